"""The line that says how far a command has come."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from tilewright.cli.output import printable


@contextmanager
def progress_line(*, is_wanted: bool, what: str) -> Iterator[Callable[[str], None] | None]:
    """Show one line that changes, where standard error is a terminal and somebody reads it."""
    if not is_wanted or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    with Console(stderr=True).status(what) as status:
        yield lambda text: status.update(Text(printable(text)))
