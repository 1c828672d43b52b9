"""Where the author of a flow wrote a call."""

import sys
from pathlib import Path

__all__ = ("author_line",)

_PACKAGE = Path(__file__).parents[1]
_FLOWS = str(_PACKAGE / "flows")
_HERE = str(_PACKAGE)


def author_line() -> str:
    """File and line of the nearest caller that is no part of the op library: "quest.py:31".

    Ready flows count as authors.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def _is_library(filename: str) -> bool:
    inside = filename.startswith(_HERE) and not filename.startswith(_FLOWS)
    return inside or filename.startswith("<frozen")
