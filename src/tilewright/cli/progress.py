"""How far a command has come: one line or bar that changes, where standard error is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from tilewright.cli.output import note, printable


def _is_watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def progress_line(*, is_wanted: bool, what: str) -> Iterator[Callable[[str], None] | None]:
    """Show one line that changes, where somebody reads it; elsewhere nothing."""
    if not is_wanted or not _is_watched():
        yield None
        return
    with Console(stderr=True).status(what) as status:
        yield lambda text: status.update(Text(printable(text)))


@contextmanager
def progress_bar(*, is_wanted: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Show how many of how many are done, and what is done now; elsewhere a few lines."""
    if not is_wanted or not _is_watched():
        yield lambda done, total, what: note(f"{done} of {total}: {what}") if what else None
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("loading", total=None)
        yield lambda done, total, what: bar.update(
            task, completed=done, total=total, description=what
        )
