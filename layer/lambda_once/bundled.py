"""Packages that the layer carries for functions and images that have none of their own."""

from __future__ import annotations

import os.path
import sys

# Where the build puts what must be bundled; never on the import path unless it is needed.
BUNDLED = os.path.join(os.path.dirname(__file__), "_bundled")


def make_importable(package: str) -> None:
    """Where ``package`` is nowhere, put our bundled copies last, so that any other copy wins."""
    from importlib.util import find_spec

    if package not in sys.modules and find_spec(package) is None:
        sys.path.append(os.path.join(BUNDLED, package))
