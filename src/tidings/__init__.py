"""Publish/subscribe that keeps its promises about time."""

from tidings.native_code import use_compiled_code

__version__ = "0.1.0"

CODE = use_compiled_code()  # which runs
