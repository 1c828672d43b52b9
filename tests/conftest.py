"""How many random examples a property gets, what runs first, and who rewrites golden files.

``HYPOTHESIS_PROFILE`` is ``ci`` or ``all``. What the caller's shell says of terminals reaches no
test and no process that a test begins: it would change what commands print.
"""

import gc
import os

import pytest
from hypothesis import settings

OF_TERMINALS = (  # read by Rich or Typer
    "COLORTERM", "COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "LINES", "NO_COLOR", "PY_COLORS",
    "TERMINAL_WIDTH", "TTY_COMPATIBLE", "TTY_INTERACTIVE",
)  # fmt: skip
for name in OF_TERMINALS:
    os.environ.pop(name, None)

settings.register_profile("ci", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("all", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "rewrite golden files; review the difference like code"
    parser.addoption("--update-golden", action="store_true", help=text)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole systems first: they take longest, and no worker should be left alone with one."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/system/"))


def pytest_collection_finish() -> None:
    """Keep what collection made out of garbage collections, each of which would look at it."""
    gc.collect()
    gc.freeze()
