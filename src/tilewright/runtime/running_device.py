"""A device with all that runs programs on it; after an error another one takes its place."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tilewright import language
from tilewright.device.build import Device, build_device
from tilewright.device.command_path import CommandPath
from tilewright.engine import AUTO, Auto, Engine, EngineKind
from tilewright.engine.hub import Hub
from tilewright.engine.message import first_line
from tilewright.errors import TilewrightError
from tilewright.executor.effect import EffectLog
from tilewright.executor.launcher import Launcher, MmuOf
from tilewright.executor.quiet import quiet_values, rare_collections
from tilewright.machine.build import Machine
from tilewright.memory.sanitizer.tensor import TensorBook
from tilewright.runtime.memory import DeviceMemory


@dataclass(frozen=True, slots=True)
class RunningDevice:
    """One engine and what was built on it. Memories and page tables are not part of it."""

    device: Device
    path: CommandPath
    effects: EffectLog
    hub: Hub
    launcher: Launcher


def build_device_at(
    machine: Machine, choice: EngineKind | Auto = AUTO, *, start_ps: int = 0
) -> Device:
    """Build a device on which nothing is under way, with a clock that stands at ``start_ps``."""
    with rare_collections():
        device = build_device(machine, choice)
    device.engine.advance(start_ps)
    return device


def build_running_device(
    device: Device,
    memory: DeviceMemory,
    mmu_of: MmuOf,
    effects: EffectLog,
    tensors: Callable[[], TensorBook],
    first_program: int,
) -> RunningDevice:
    """Build what runs programs on a device; their numbers begin with ``first_program``."""
    path = CommandPath(device)
    hub = Hub(device.engine, effects.apply, first_number=first_program)
    launcher = build_launcher(device, path, memory, mmu_of, tensors)
    return RunningDevice(device, path, effects, hub, launcher)


def build_launcher(
    device: Device,
    path: CommandPath,
    memory: DeviceMemory,
    mmu_of: MmuOf,
    tensors: Callable[[], TensorBook],
) -> Launcher:
    """Build what starts kernels on the PEs of a device.

    ``tensors`` describes the tensors that have memory; it is called for the text of an error.
    """
    return Launcher(
        device,
        memory.memories,
        memory.locate,
        mmu_of,
        vars(language),
        path.pe,
        memory.tcm_used_bytes,
        tensors,
    )


def apply_served(effects: EffectLog, engine: Engine, error: BaseException) -> None:
    """Apply what memories had served when a run ended with ``error``.

    A value that cannot be computed is noted beside that error, and ends this.
    """
    try:
        with quiet_values():
            effects.apply(engine.take_effects())
    except TilewrightError as second:
        error.add_note(f"and then {first_line(second)}")


@dataclass(slots=True)
class _HostEffect:
    """An effect that removes itself from those that are under way when it happens."""

    act: Callable[[], object]
    changes: bool  # memories or page tables
    under_way: "dict[int, _HostEffect]"
    number: int = -1

    def apply(self) -> bool:
        del self.under_way[self.number]
        self.act()
        return self.changes


@dataclass(slots=True)
class HostEffects:
    """Effects that the host has asked for, by their numbers in a device's log.

    An error in a kernel does not lose them.
    """

    _under_way: dict[int, _HostEffect] = field(default_factory=dict)

    def add(
        self, log: EffectLog, act: Callable[[], object], what: str, *, changes: bool = True
    ) -> int:
        """Add an effect to the log; return the number that its task reports once served."""
        effect = _HostEffect(act, changes, self._under_way)
        effect.number = log.add(effect, 1, what)
        self._under_way[effect.number] = effect
        return effect.number

    def apply_all(self, log: EffectLog, at_ps: int) -> None:
        """Let all that is under way happen now, in the order in which it was asked for."""
        log.apply([(at_ps, number) for number in sorted(self._under_way)])
