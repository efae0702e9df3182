"""Which file is at fault when a package that is the user's or the runtime's cannot be imported."""

from __future__ import annotations

import os
import sys
import traceback


def blame(fault: BaseException) -> str:
    """The files to look at, in parentheses; empty if there are none to name."""
    named = [place for place in (_place(fault), *_shadows()) if place]
    return f" ({'; '.join(named)})" if named else ""


def _place(fault: BaseException) -> str:
    """The file that could not be used, or else the one that raised."""
    if isinstance(fault, ImportError) and fault.path:
        return f"in {fault.path}"
    files = [frame.filename for frame in traceback.extract_tb(fault.__traceback__)]
    real = [file for file in files if not file.startswith("<")]
    return f"in {real[-1]}" if real else ""


def _shadows() -> list[str]:
    """Loaded modules that are named like one of Python's own and are not: a frequent cause."""
    own = os.path.dirname(os.__file__)
    found = []
    for name in sorted(sys.stdlib_module_names & set(sys.modules)):
        file = getattr(sys.modules[name], "__file__", None)
        if file and ("site-packages" in file or not file.startswith(own + os.sep)):
            found.append(f"{file} is imported in place of Python's own {name}")
    return found
