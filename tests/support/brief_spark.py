"""Settings for a Spark that a test starts as a process and that lives for a minute: no plan is made
again or compiled, and Java compiles once, as most of the time would go into that."""

from __future__ import annotations

from tidings.pipeline.analyse.spark_settings import LITTLE_PLANNING
from tidings.pipeline.java import java_home
from tidings.pipeline.session import JAVA_OPTIONS, java_options

BRIEFLY = {JAVA_OPTIONS: java_options(java_home(), brief=True), **LITTLE_PLANNING}


def as_options(settings: dict[str, str]) -> list[str]:
    """As words of a command line."""
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
