"""Processes that take Ctrl-C, however the tests were started."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ("backgrounds", "interruptible_children", "with_interrupt_handler")

backgrounds = pytest.mark.parametrize(
    "handler",
    [signal.default_int_handler, signal.SIG_IGN],
    ids=["in front", "in the background of a script"],
)
"""What tests find when they begin: a script's background ignores Ctrl-C, and so do its children."""


@contextmanager
def with_interrupt_handler(handler: Any) -> Iterator[None]:
    """Run the block with another handler of SIGINT."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def interruptible_children() -> Iterator[None]:
    """Begin processes in the block: they neither ignore nor block SIGINT, whatever holds here."""
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        with with_interrupt_handler(signal.default_int_handler):
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
