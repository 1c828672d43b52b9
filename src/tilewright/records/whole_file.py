"""Locks of files that several processes write, and of files that are under way."""

import errno
import fcntl
import hashlib
import io
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from tilewright.errors import RecordError


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


FIX = "choose another path, change its permissions or free space there"
PROCESSES = "/proc"  # links in there lead to what a process has open, whatever its name
OWN_DESCRIPTORS = "/proc/self/fd"
MAX_LINKS = 40


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file under way; what cannot be written is a RecordError where it happens."""

    path: Path
    what: str  # for people
    unfinished: BinaryIO

    def write(self, content: bytes) -> int:
        with _told(self.path, self.what):
            return self.unfinished.write(content)


@contextmanager
def whole_file(path: Path, what: str) -> Iterator[WholeFile]:
    """A file that appears under its name when the block ends; after an error nothing is left.

    An older one is replaced in one step. What a killed process has left of the same file is
    removed. A pipe or a device gets all bytes at the end of the block.
    """
    with _told(path, what):
        target = _plain_target(path)
    if target is None:
        buffered = io.BytesIO()
        yield WholeFile(path, what, buffered)
        with _told(path, what):
            _write_through(path, buffered.getvalue())
        return
    with _told(path, what):
        unfinished, file = _begun(target)
    try:
        yield WholeFile(path, what, file)
        with _told(path, what):
            file.flush()
            os.fsync(file.fileno())
            unfinished.replace(target)  # before its lock goes, so that nobody removes it
            file.close()
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        with suppress(OSError):  # of what is still in its buffer
            file.close()
        raise


def write_file(path: Path, content: bytes, what: str) -> None:
    """Write it whole or not at all; an older file is replaced in one step."""
    with whole_file(path, what) as file:
        file.write(content)


@contextmanager
def locked_target(path: Path, what: str) -> Iterator[None]:
    """Let one process at a time read a file and write it anew; it must be a plain file."""
    with _told(path, what):
        target = _plain_target(path)
    if target is None:
        found = "a pipe or a device"
        raise RecordError(str(path), found, f"a {what} that can be read back", FIX)
    with ExitStack() as held:
        with _told(path, what):
            held.enter_context(locked_file(_beside(target, "lock")))
        yield


def check_target(path: Path, what: str) -> None:
    """Refuse, before any work is done, a path that ``what`` cannot be written to."""
    where = str(path)
    with _told(path, what):
        if path.is_dir():
            raise RecordError(where, "a directory", f"a file to write the {what} into", FIX)
        target = _plain_target(path)
        if target is None:
            return
        folder = target.parent
        if not folder.is_dir():
            found = f"no directory {str(folder)!r}"
            expected = f"a directory to write the {what} into"
            raise RecordError(where, found, expected, "make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        found = f"a directory {str(folder)!r} that cannot be written"
        raise RecordError(where, found, "a writable directory", FIX)


def check_targets(targets: Mapping[str, Path | None]) -> None:
    """Refuse, before any work is done, paths by what is written there; None is not written.

    Two of them in one plain file are refused too: the second would replace the first.
    """
    owners: dict[Path, str] = {}
    for what, path in targets.items():
        if path is None:
            continue
        check_target(path, what)
        target = _plain_target(path)
        if target is None:
            continue
        owner = owners.setdefault(Path(os.path.realpath(target)), what)
        if owner != what:
            found, expected = f"the file of the {owner}", f"another file for the {what}"
            raise RecordError(str(path), found, expected, "choose two names")


def _plain_target(path: Path) -> Path | None:
    """Return the plain file that is to be written, links followed; None: write into what is there.

    Sockets and block devices are an OSError.
    """
    followed = path
    for _ in range(MAX_LINKS):
        if not followed.is_symlink():
            break
        folder = followed.parent.resolve()
        if folder.is_relative_to(PROCESSES):
            return None
        followed = Path(os.path.normpath(folder / followed.readlink()))
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return followed
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return followed
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return None
    raise OSError("a block device" if stat.S_ISBLK(mode) else "a socket")


def _write_through(path: Path, content: bytes) -> None:
    own = _own_descriptor(path)
    if own is not None:  # opened anew, it would be written from its start, over what is there
        with open(os.dup(own), "wb") as file:
            file.write(content)
        return
    # without waiting: a pipe that nobody reads would never open
    flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError("a pipe that nobody reads") from error
        raise
    with open(descriptor, "wb") as file:
        os.set_blocking(descriptor, True)
        file.write(content)


def _own_descriptor(path: Path) -> int | None:
    """Return which open file of this process a path like /dev/stdout leads to; None: none."""
    own = Path(OWN_DESCRIPTORS).resolve()
    followed = path
    for _ in range(MAX_LINKS):
        folder = followed.parent.resolve()
        if folder == own:
            return int(followed.name)
        if not followed.is_symlink():
            return None
        followed = Path(os.path.normpath(folder / followed.readlink()))
    return None


def _begun(target: Path) -> tuple[Path, BinaryIO]:
    """Open an unfinished file beside its target, and remove those that killed processes left."""
    # in the same directory: a replacement is one step only inside one file system
    for left in target.parent.glob(_beside(target, "*").name):
        if left.suffix == ".tmp":
            remove_if_abandoned(left)
    while True:
        unfinished = _beside(target, f"{uuid4().hex}.tmp")
        file = unfinished.open("xb")
        with suppress(OSError):  # a file system without locks: then nobody removes it either
            fcntl.flock(file, fcntl.LOCK_EX)  # as long as it is open, somebody writes it
        if unfinished.exists():  # else another process found it before it had its lock
            return unfinished, file
        file.close()


def _beside(target: Path, ending: str) -> Path:
    """Return a hidden file that belongs to a target; a hash, since names have a longest length."""
    if not target.name:
        raise ValueError("no name")
    key = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]
    return target.with_name(f".tilewright-{key}.{ending}")


@contextmanager
def _told(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: no name, or a zero byte in it
        found = f"a target that cannot be written ({getattr(error, 'strerror', None) or error})"
        raise RecordError(str(path), found, f"a writable path for the {what}", FIX) from error
