"""Which of Spark's classes does Java find ready? Those in an archive, if one has been made for it.

Spark is made of more than ten thousand classes. To unpack, read and check them takes Java most of
the time in which Spark starts and does little work. Java can keep them as they are in memory, in a
file that the next JVM maps ("class data sharing"); `class_archive_maker` makes that file.

Java looks by itself whether a file fits: its own build, the class path, the time of each jar. One
that does not fit is passed over; what Java would say about that is turned off, as nobody is harmed.
So a file need not be there, and nothing but time depends on it. Java does not look whether a file
that fits is whole, and crashes if it was cut short: it is to be removed then, and may be made anew.
"""

from __future__ import annotations

from pathlib import Path

import pyspark

IN_SILENCE = "-Xlog:cds*=off -Xlog:class+path=off"


def archive_file(home: Path) -> Path:
    """Of this Spark, for the Java of this home."""
    return home / f"spark-{pyspark.__version__}.jsa"


def archive_options(home: Path) -> str:
    """Options of a JVM that runs Spark; none if there is no archive."""
    archive = archive_file(home)
    return f'"-XX:SharedArchiveFile={archive}" {IN_SILENCE}' if archive.exists() else ""
