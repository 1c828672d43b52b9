"""Programs that a sanitizer watches: the same commands at the same times, seen from beside.

A watched program has its addresses tagged with the tensor that they came from, so that no
arithmetic loses it, and stand-ins for what it issues, translates and waits with."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilewright.device.mmu import Walk
from tilewright.engine.core import NO_ROOM, NO_VALUE, IssuedAccess, IssuedStep
from tilewright.errors import AddressError, InternalError
from tilewright.executor.address import Piece
from tilewright.executor.effect import WatchedEffectLog
from tilewright.executor.kernel_program import KernelProgram
from tilewright.executor.order import Span
from tilewright.executor.run import Run
from tilewright.executor.sanitize.monitor import LaunchWatch, ProgramWatch
from tilewright.language.dtype import DType
from tilewright.language.kernel import ArrayArgument, DescriptorArgument
from tilewright.language.value import Pointers
from tilewright.memory.sanitizer.access import NOWHERE, Places
from tilewright.memory.sanitizer.sanitizer import Sanitizer


class WatchedProgram(KernelProgram):
    """As any program, but for who looks on."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        watch = self.watch = ProgramWatch(self.run.sanitizer, self, self.stream)
        self.issuer = _WatchedIssuer(self.issuer, watch)  # type: ignore[assignment]
        self.translator = _WatchedTranslator(self.translator, watch)  # type: ignore[assignment]
        self.stream = _WatchedStream(self.stream, watch)  # type: ignore[assignment]

    def pointers(self, address: int, element: DType) -> Pointers:
        return super().pointers(self.watch.tagged(address), element)

    def untagged(self, pointers: Pointers) -> Pointers:
        bare: Pointers = self.watch.untagged(pointers)
        return bare

    def end(self) -> None:
        super().end()
        self.watch.ended()


class _StandIn:
    """For an object that is asked the same questions, most of which it passes on."""

    def __init__(self, real: Any, watch: ProgramWatch) -> None:
        self._real = real
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _WatchedStream(_StandIn):
    def wait(self, task: int, what: Any, **more: Any) -> None:
        self._real.wait(task, what, **more)
        self._watch.waited(task)


class _WatchedTranslator(_StandIn):
    def pieces(self, spans: list[Span], by: Walk) -> list[Piece]:
        try:
            found: list[Piece] = self._real.pieces(spans, by)
        except AddressError as fault:
            self._watch.note_fault(spans, fault)
            raise
        self._watch.note_pieces(spans, found)
        return found


class _WatchedIssuer(_StandIn):
    """Knows for every value and task which accesses come before it."""

    def compute(self, plan: int, operands: list[int]) -> int:
        after = self._watch.ancestry.of_values(operands)
        return self._made(self._real.compute(plan, operands), after)

    def update(self, plan: int, value: int, operands: list[tuple[int, int]]) -> int:
        numbers = [number for number, _ in operands]
        after = self._watch.ancestry.of_values([value, *numbers])
        return self._made(self._real.update(plan, value, operands), after)

    def load(
        self, num_bytes: int, accesses: list[IssuedAccess], after: list[int], served: int
    ) -> int:
        before = self._watch.ancestry.of_tasks(after)
        effect, places = self._watch.issue(before, len(accesses), served)
        return self._made(self._real.load(num_bytes, accesses, after, effect), places)

    def store(
        self,
        value: int,
        num_bytes: int,
        accesses: list[IssuedAccess],
        after: list[int],
        served: int,
    ) -> int:
        ancestry = self._watch.ancestry
        before = ancestry.of_tasks(after) | ancestry.of_values([value])
        effect, places = self._watch.issue(before, len(accesses), served)
        task: int = self._real.store(value, num_bytes, accesses, after, effect)
        if task != NO_ROOM:
            ancestry.set_task(task, places, self._real.num_commands)
        return task

    def receive(self, num_bytes: int, steps: list[IssuedStep]) -> int:
        return self._made(self._real.receive(num_bytes, steps), NOWHERE)

    def open_composite(self) -> None:
        self._real.open_composite()
        self._watch.ancestry.open_composite()

    def close_composite(self) -> int:
        task: int = self._real.close_composite()
        self._watch.ancestry.close_composite(task)
        return task

    def release(self, value: int) -> None:
        self._real.release(value)
        self._watch.ancestry.release(value)

    def task_of(self, value: int) -> int:
        task: int = self._real.task_of(value)
        self._watch.ancestry.note_task_of(value, task, self._real.num_commands)
        return task

    def _made(self, value: int, places: Places) -> int:
        if value not in (NO_ROOM, NO_VALUE):
            self._watch.ancestry.set_value(value, places)
        return value


def watch_launch(sanitizer: Sanitizer, name: str, run: Run) -> LaunchWatch:
    """Before the programs of a run begin; its log of effects is a watched one."""
    if not isinstance(run.effects, WatchedEffectLog):
        found = f"a sanitizer with a log of type {type(run.effects).__name__}"
        raise InternalError("launch", found, "a WatchedEffectLog", "report it")
    return LaunchWatch(sanitizer, sanitizer.begin_launch(name), run.effects, run.memories)


def tagged_arguments(watch: LaunchWatch, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as they are when the host launches: later their bytes may be another's."""
    return {name: _tagged(watch, value) for name, value in arguments.items()}


def _tagged(watch: LaunchWatch, value: Any) -> Any:
    match value:
        case ArrayArgument(address=address):
            return replace(value, address=watch.sanitizer.tensors.tagged(address))
        case DescriptorArgument(array=array):
            return replace(value, array=_tagged(watch, array))
        case tuple():
            return tuple(_tagged(watch, part) for part in value)
    return value
