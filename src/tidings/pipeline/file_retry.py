"""What if Spark fails at a file that was good a moment ago?

Compaction may have gathered the file, so that its rows are elsewhere; or its footer promises pages
that are not there. In either case the folder is looked at again, all rows are read if need be to
find the bad file, and the work begins again with what is left. Any other error is said in one line.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tidings.core.errors import TidingsError, first_line
from tidings.pipeline.session import java_has_ended
from tidings.traces.files import LOOKS
from tidings.traces.intake import Intake, read_through, take_in

T = TypeVar("T")

JAVA_GONE = (
    "Java has ended in the middle of it. It ends so when it needs more memory than it may have: "
    "give it more with --conf spark.driver.memory=8g"
)


def with_file_retry(folder: Path, intake: Intake, purpose: str, work: Callable[[Intake], T]) -> T:
    """What `work` makes of the files; `purpose` is for a person: Spark could not ... the folder."""
    looks = 1
    while True:
        try:
            return work(intake)
        except TidingsError:
            raise
        except Exception as error:  # of Spark's Python side, its Java side, or what joins them
            tried = looks == LOOKS or java_has_ended(error)
            again = None if tried else _other_files(folder, intake)
            if again is None:
                raise spark_error(purpose, folder, error) from error
            intake, looks = again, looks + 1


def spark_error(purpose: str, path: Path, error: Exception) -> TidingsError:
    """What Spark says in a hundred lines, in one."""
    problem = JAVA_GONE if java_has_ended(error) else first_line(error)
    return TidingsError(f"Spark could not {purpose} {path}: {problem}")


def _other_files(folder: Path, before: Intake) -> Intake | None:
    """What can be read of a folder now; None if all that was read before is there and good. New
    files are no reason to begin again: brokers may be writing."""
    read = _files(before)
    is_there = all(file.exists() for file in read)
    again = read_through(folder) if is_there else take_in(folder)
    return None if read <= _files(again) else again


def _files(intake: Intake) -> set[Path]:
    return {file for found in intake.files.values() for file in found}
