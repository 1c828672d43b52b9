"""Files of others, read up to a limit: a device or a pipe may have no end."""

import os
from pathlib import Path

from tilewright.errors import TilewrightError

MAX_TEXT_BYTES = 2**24
"""Limit of text that people write: programs, flows, prompts, configurations."""


def read_file(
    path: Path, what: str, error: type[TilewrightError], *, most_bytes: int = MAX_TEXT_BYTES
) -> bytes:
    """Return the bytes of a file; one that cannot be read, or is larger, is an ``error``.

    A pipe that nobody has opened for writing is an empty file: waiting for a writer could last for
    ever.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            os.set_blocking(descriptor, True)
            content = file.read(most_bytes + 1)
    except (OSError, ValueError) as problem:  # ValueError: a zero byte in the path
        found = f"a file that cannot be read ({getattr(problem, 'strerror', None) or problem})"
        fix = "check the path and its permissions"
        raise error(str(path), found, what, fix) from problem
    if len(content) > most_bytes:
        found, fix = f"more than {most_bytes} bytes", f"name a file that is {what}"
        raise error(str(path), found, f"{what} of at most {most_bytes} bytes", fix)
    return content


def read_text_file(path: Path, what: str, error: type[TilewrightError]) -> str:
    """Return the text of a file in UTF-8, read as `read_file` does."""
    content = read_file(path, what, error)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        found = f"the byte 0x{content[problem.start]:02x}, which is no UTF-8"
        where, fix = f"{path} line {line}", "save the file as UTF-8"
        raise error(where, found, "text in UTF-8", fix) from problem
