"""Which file is at fault when a package that is the user's or the runtime's cannot be imported."""

from __future__ import annotations

import os
import sys
import traceback


def files_at_fault(fault: BaseException) -> str:
    """The files to look at, in parentheses; empty if there are none to name."""
    named = [*_places(fault), *_shadows()]
    return f" ({'; '.join(named)})" if named else ""


def _places(fault: BaseException) -> list[str]:
    """The file that raised, and the one that it could not use."""
    files = [frame.filename for frame in traceback.extract_tb(fault.__traceback__)]
    raised_in = [file for file in files if not file.startswith("<")][-1:]
    unusable = fault.path if isinstance(fault, ImportError) else None
    return [f"in {file}" for file in dict.fromkeys([*raised_in, unusable]) if file]


def _shadows() -> list[str]:
    """Loaded modules that are named like one of Python's own and are not: a frequent cause."""
    own = os.path.dirname(os.__file__)
    found = []
    for name in sorted(sys.stdlib_module_names & set(sys.modules)):
        file = getattr(sys.modules[name], "__file__", None)
        if file and ("site-packages" in file or not file.startswith(own + os.sep)):
            found.append(f"{file} is imported in place of Python's own {name}")
    return found
