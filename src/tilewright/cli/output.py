"""Standard output whose reader may go away, and standard error that may not be there."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

PROGRAM = "tilewright"


def printable(text: str, kept: str = "\n") -> str:
    r"""Return a text with escapes for what a terminal would obey: files may have anything in them.

    >>> print(printable("a name\nthat clears \x1b[2J"))
    a name
    that clears \x1b[2J
    """
    return "".join(
        letter if letter.isprintable() or letter in kept else ascii(letter)[1:-1] for letter in text
    )


def note(message: str) -> None:
    """Tell the user something while a command runs; results alone go to standard output.

    Nobody may be listening, and that is no reason to stop.
    """
    if sys.stderr is None:  # print() would take standard output instead
        return
    try:
        print(printable(message), file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


class Output:
    """A text stream that drops what cannot be written, and remembers why.

    A reader that has seen enough (``tilewright demo | head -1``) is no failure; a full disk is.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.failure: str | None = None
        self._stream = stream

    def write(self, text: str) -> int:
        if self._stream is None:
            self.failure = "it is closed"
        else:
            self._attempt(self._stream, lambda stream: stream.write(text))
        return len(text)

    def flush(self) -> None:
        if self._stream is not None:
            self._attempt(self._stream, lambda stream: stream.flush())

    def __getattr__(self, name: str) -> Any:  # whatever else a stream has: isatty, encoding, ...
        return getattr(self._stream, name)

    def _attempt(self, stream: TextIO, action: Callable[[TextIO], object]) -> None:
        try:
            action(stream)
        except BrokenPipeError:
            _discard(stream)
        except OSError as error:
            self.failure = error.strerror or str(error)
            _discard(stream)


def _discard(stream: TextIO) -> None:
    """Send the rest nowhere, also what the interpreter flushes when it ends."""
    with suppress(OSError):  # a stream in memory has no descriptor, and no such rest
        descriptor = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(descriptor, stream.fileno())
        finally:
            os.close(descriptor)
