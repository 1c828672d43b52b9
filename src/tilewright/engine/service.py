"""Servers written in Python: each call is checked, its errors named, and no greenlet may switch."""

from collections.abc import Callable
from reprlib import repr as short_repr
from types import TracebackType
from typing import Any

import greenlet

from tilewright.engine.fault import first_line, id_text
from tilewright.engine.spec import CoreService, PacketView, ServerSpec, integer_fix
from tilewright.errors import EngineError, ServerError
from tilewright.units import MAX_PS

EXPECTED = f"(hold_ps, latency_ps), a tuple of two ints in 0..{MAX_PS} (no bool, no NumPy scalar)"


class ProgramGreenlet(greenlet.greenlet):
    """One that its hub alone may resume or end."""

    __slots__ = ("is_abandoned",)

    is_abandoned: bool  # there, and True, once its hub is closed: it may be ended anywhere


class RunGuard:
    """Knows which Python server is at work, why a run stopped, and refuses greenlet switches.

    A switch would leave the core's frames on a stack that may never be resumed. greenlet reports
    a switch when it has just happened, in its target, so the error is raised there, and the run
    is stopped first, since the frames that called the core may never see the error.
    """

    __slots__ = ("_previous", "has_hub", "is_plain", "serving", "stop_reason", "switch_error")

    def __init__(self) -> None:
        self.has_hub = False  # that runs: wake-ups go by program number, so there is one
        self.is_plain = True  # not stopped, and no server in Python
        self.serving: str | None = None
        self.stop_reason: str | None = None
        self.switch_error: EngineError | None = None
        self._previous: Callable[..., Any] | None = None

    def stop(self, error: BaseException) -> None:
        """The first error counts."""
        self.is_plain = False
        if self.stop_reason is None:
            is_interrupt = isinstance(error, KeyboardInterrupt)
            self.stop_reason = "interrupted" if is_interrupt else first_line(error)

    def __enter__(self) -> None:
        self._previous = greenlet.settrace(self._trace)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        greenlet.settrace(self._previous)
        self.serving = None

    def _trace(self, event: str, switch: tuple[greenlet.greenlet, greenlet.greenlet]) -> None:
        origin, target = switch
        # The garbage collector ends a forgotten greenlet by a throw that comes back here.
        may_end = event == "throw" and target.parent is origin
        is_kept = isinstance(target, ProgramGreenlet) and not hasattr(target, "is_abandoned")
        if origin.dead or (may_end and not is_kept):
            return
        where = "engine" if self.serving is None else f"server {self.serving!r}"
        found, expected = "a greenlet switch inside a Python server", "a call that returns"
        fix = "wait in a program, not in a server"
        self.switch_error = EngineError(where, found, expected, fix)
        self.stop(self.switch_error)
        raise self.switch_error


def checked_service(spec: ServerSpec, flit_ps: int, guard: RunGuard) -> CoreService:
    """The service of ``spec`` as a core calls it."""
    if spec.service is None:
        raise EngineError(f"server {spec.name!r}", "no service", "a Python server", "give it one")
    serve, name = spec.service.service, spec.name

    def call(
        packet_id: int,
        task_id: int,
        position: int,
        flits: int,
        num_bytes: int,
        tag: int,
        offset_bytes: int,
        now_ps: int,
    ) -> tuple[int, int]:
        packet = PacketView(packet_id, task_id, position, flits, num_bytes, tag, offset_bytes)
        guard.serving = name
        try:
            times = serve(packet, now_ps)
        except Exception as error:
            raise _raised(name, packet, now_ps, error) from error
        if guard.switch_error is not None:  # the server caught what the switch raised
            raise _raised(name, packet, now_ps, guard.switch_error) from guard.switch_error
        if not _is_pair(times):
            raise _nonsense(name, packet, now_ps, times, EXPECTED)
        hold_ps, latency_ps = times
        if hold_ps < flits * flit_ps:
            least = f"hold_ps >= {flits * flit_ps}, the time of {flits} flits of {flit_ps} ps"
            raise _nonsense(name, packet, now_ps, times, least)
        if hold_ps + latency_ps < 1:
            raise _nonsense(name, packet, now_ps, times, "hold_ps + latency_ps >= 1")
        return times

    return call


def _is_pair(times: object) -> bool:
    return (
        isinstance(times, tuple)
        and len(times) == 2
        and all(type(time_ps) is int and 0 <= time_ps <= MAX_PS for time_ps in times)
    )


def _nonsense(
    name: str, packet: PacketView, now_ps: int, times: object, expected: str
) -> ServerError:
    found = f"{short_repr(times)} returned for {_packet_text(packet, now_ps)}"
    members = times if isinstance(times, tuple) else ()
    fix = next(filter(None, map(integer_fix, members)), "correct its service method")
    return ServerError(f"server {name!r}", found, expected, fix)


def _raised(name: str, packet: PacketView, now_ps: int, error: Exception) -> ServerError:
    text = str(error) or "no text"
    found = f"{type(error).__name__} ({text}) raised for {_packet_text(packet, now_ps)}"
    return ServerError(f"server {name!r}", found, EXPECTED, "correct its service method")


def _packet_text(packet: PacketView, now_ps: int) -> str:
    size = f"{packet.num_flits} flits, {packet.num_bytes} bytes, tag {packet.tag}"
    return f"packet {id_text(packet.packet_id)} ({size}) at {now_ps} ps"
