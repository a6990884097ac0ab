"""Publish/subscribe that keeps its promises about time."""

import sys

from tidings.native_code import CompiledModules, compiled_modules

__version__ = "0.1.0"

_compiled = compiled_modules()
if isinstance(_compiled, CompiledModules):
    sys.meta_path.insert(0, _compiled)
CODE = f"interpreted ({_compiled})" if isinstance(_compiled, str) else "compiled"  # which runs
