"""Locks of files that several processes write, and of files that are under way."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def locked_file(lock: Path) -> Iterator[None]:
    """Hold a lock while the block runs; other processes wait for it. No file stays behind.

    A process that is killed gives its lock back; its file is taken over by the next one.
    """
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_at(lock, descriptor):  # else somebody has removed it meanwhile
                try:
                    yield
                finally:
                    lock.unlink()
                return
        finally:
            os.close(descriptor)


def take_lock(descriptor: int) -> None:
    """Mark an open file as one that somebody writes, as long as it is open."""
    with suppress(OSError):  # a file system without locks: then nobody removes it either
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def remove_if_abandoned(file: Path) -> None:
    """Remove a file unless a living process holds its lock, or nobody can tell."""
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.unlink()
        finally:
            os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
