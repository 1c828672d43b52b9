"""Errors of a kernel: the author's line, the program, the simulated time, what held the TCM."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from traceback import walk_tb
from types import FrameType
from typing import Any

from tilewright.engine.fault import CoreFault, first_line
from tilewright.errors import AddressError, TilewrightError
from tilewright.language.block_type import BlockType
from tilewright.language.executor import current_program
from tilewright.language.source import SourceLine, add_place, add_time, is_ours, line_text

MAX_TILES = 8  # of the TCM, that an error names


@contextmanager
def explained() -> Iterator[None]:
    """Errors of the running program say where the kernel's author finds the reason.

    An error of the author's own gets a note; what the core refuses reads as if the end of a piece
    had found it, whichever engine runs. The time is that at which the program would be at the line;
    an error that the kernel itself catches has none, since nobody knows it yet.
    """
    program: Any
    try:
        yield
    except AddressError as error:
        program = _in_time(current_program(), error)
        raise error.located(kernel=program.name, line=_place(error, program)) from None
    except TilewrightError as error:
        _locate(error, _in_time(current_program(), error))
        raise
    except CoreFault as error:
        program = current_program()
        refused = program.run.device.engine.error_of_run(error)
        refused = refused.with_traceback(error.__traceback__)
        _locate(refused, program)
        raise refused from None
    except Exception as error:
        program = _in_time(current_program(), error)
        error.add_note(f"in {program}, at {program.run.hub.now_ps} ps")
        raise


def _in_time(program: Any, error: Exception) -> Any:
    """The program when it would have failed: it has run ahead of its commands."""
    if not program.run.hub.is_inside:  # the run ends already, and lets nobody wait
        return program
    what = f"the time of {first_line(error)}"  # a text: the hub keeps it, and the error the hub
    # what the core refuses takes no time; the error at hand tells why, or comes before it
    with suppress(CoreFault, TilewrightError):
        program.stream.catch_up(what)
    return program


def _locate(error: BaseException, program: Any) -> None:
    if not isinstance(error, TilewrightError):
        return
    if str(program) in error.where:
        add_time(error, program.run.hub.now_ps)
    else:
        add_place(error, _place(error, program))


def _place(error: BaseException, program: Any) -> str:
    return f"{_line_of(error)}, {program}, at {program.run.hub.now_ps} ps"


def _line_of(error: BaseException) -> str:
    """The last line outside of the language that called into it."""
    found: FrameType | None = None
    number = 0
    caller: tuple[FrameType, int] | None = None
    for frame, line in walk_tb(error.__traceback__):
        if caller is not None and is_ours(frame.f_code):
            found, number = caller
        caller = None if is_ours(frame.f_code) else (frame, line)
    if found is None:
        return line_text(None)
    return f"{found.f_code.co_filename}:{number} in {found.f_code.co_name}"


def held_text(
    tiles: Iterable[tuple[BlockType, SourceLine]], used_bytes: int, register_bytes: int
) -> str:
    """Return the tiles that the TCM holds, the largest first, and the bytes of spilled results.

    ``used_bytes`` are all bytes of the TCM that are not free; what no tile has is spilled.
    """
    largest_first = sorted(tiles, key=lambda tile: -tile[0].num_bytes)
    texts = [f"{tile} ({tile.num_bytes} bytes, {line_text(line)})" for tile, line in largest_first]
    held = texts[:MAX_TILES]
    if len(texts) > MAX_TILES:
        held.append(f"{len(texts) - MAX_TILES} more")
    spilled_bytes = used_bytes - sum(tile.num_bytes for tile, _ in largest_first)
    if spilled_bytes > 0:
        registers = f"the registers ({register_bytes} bytes)"
        held.append(f"{spilled_bytes} bytes of results that {registers} have no room for")
    return "; ".join(held) or "nothing"
