"""The critical paths of launches, from a run whose last owners are known by an earlier one.

A run is the same each time, so the second one traces only what ended last in the first: a trace
of everything would cost more than the run. ADR 0013 has the figures.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tilewright.analysis.listener import LOOKS_PER_DRAIN, SubmittedLaunch
from tilewright.analysis.trace.activity import Column
from tilewright.analysis.trace.commands import CommandBook
from tilewright.analysis.trace.critical_path import (
    OwnerTrace,
    PathDelays,
    ProgramPath,
    break_down_program,
)
from tilewright.analysis.trace.fields import PathFields, Traces, fields_of_path
from tilewright.analysis.trace.servers import ServerTable
from tilewright.analysis.usage import Usage
from tilewright.device.build import Device
from tilewright.device.dma import Access, Channel, window_packets
from tilewright.engine.core import OWNER_SHIFT
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.runtime.request import LaunchReport

NUM_USAGES = 2  # before the first launch, after the last one
MAX_ROWS = 2_000_000  # of one owner: what came before is not looked at


def delays_of(machine: Machine) -> PathDelays:
    """What lies between the commands of a PE, by its spec."""
    pe = machine.spec.pe
    channel = Channel(PeCoord(0, 0, 0), Access.READ)
    return PathDelays(
        pe.scheduler.command_ps, pe.mmu.hit_ps, pe.mmu.walk_ps, window_packets(machine, channel)
    )


def last_ends(reports: Iterable[LaunchReport]) -> dict[int, int]:
    """Return when launches completed, each by the owner of what ended last in it."""
    return {each.last_owner: each.completed_ps for each in reports if each.last_owner is not None}


@dataclass(slots=True)
class _Kept:
    """The newest rows of one owner."""

    chunks: deque[Column] = field(default_factory=deque)
    memory_chunks: deque[Column] = field(default_factory=deque)
    num_rows: int = 0
    is_cut: bool = False

    def add(self, rows: Column, memory_rows: Column) -> None:
        self.chunks.append(rows)
        self.memory_chunks.append(memory_rows)
        self.num_rows += len(rows)
        while self.num_rows > MAX_ROWS and len(self.chunks) > 1:
            self.num_rows -= len(self.chunks.popleft())
            self.memory_chunks.popleft()
            self.is_cut = True

    def trace(self) -> OwnerTrace:
        empty = np.empty((0, 5), np.int64)
        return OwnerTrace(
            np.concatenate([empty, *self.chunks]),
            np.concatenate([empty, *self.memory_chunks]),
        )


class PathListener:
    """Breaks the launches of some owners down; and how much was used from the first to the last."""

    def __init__(
        self,
        device: Device,
        ends_ps: Mapping[int, int],
        *,
        is_across: bool = False,
    ) -> None:
        """Trace owners; with ``is_across`` all others of their launches too, for messages.

        ``ends_ps`` says when their launches completed, as `last_ends` does.
        """
        self.paths: dict[int, ProgramPath] = {}  # by owner; without those that did nothing
        self.fields: dict[int, PathFields] = {}  # of the same
        self.cut: set[int] = set()  # owners whose first rows are not there
        self.lines_ps: dict[int, dict[str, int]] = {}  # of the paths, by owner
        self.commands = CommandBook(limit=MAX_ROWS, owners=ends_ps.keys())
        self.usage: list[Usage] = []  # before the first launch, after the last one
        self.servers = ServerTable(device)
        self._device = device
        self._engine = device.engine
        self._delays = delays_of(device.machine)
        self._wanted = ends_ps.keys()
        self._last_owner = max(ends_ps, key=lambda owner: ends_ps[owner])
        self._kept: dict[int, _Kept] = {}  # of launches that are under way
        self._everybody = _Kept() if is_across else None
        self._owners = range(0)  # from the first to the last of the launches
        self._num_looks = 0

    @property
    def machine(self) -> Machine:
        return self._device.machine

    def launch_submitted(self, launch: SubmittedLaunch) -> None:
        found = self._wanted & launch.owners.keys()
        if not found:
            return
        if not self.usage:
            self.usage.append(Usage.now(self._device))
        self._drain()
        self._kept |= {owner: _Kept() for owner in sorted(found)}
        owners = (*launch.owners, *self._owners[:1], *self._owners[-1:])
        self._owners = range(min(owners), max(owners) + 1)
        self._trace_kept()

    def launch_completed(self, report: LaunchReport) -> None:
        owner = report.last_owner
        if owner not in self._kept:
            return
        self._drain()
        kept = self._kept.pop(owner)
        path = break_down_program(kept.trace(), self.servers, self._delays, report.last_end_ps)
        if path is not None:
            self.paths[owner] = path
            traced = (self._everybody or kept).trace()
            traces = Traces(traced.rows, traced.memory_rows, self.servers)
            self.fields[owner] = fields_of_path(traces, owner, self._delays, report.last_end_ps)
            self.lines_ps[owner] = self._lines_of(owner, path)
        if kept.is_cut:
            self.cut.add(owner)
        if owner == self._last_owner:
            self.usage.append(Usage.now(self._device))
        self._trace_kept()

    def device_built(self, device: Device) -> None:
        """Look at this device; what was in use counts from now on, unless all is known already."""
        if len(self.usage) == NUM_USAGES:
            return
        self.servers = ServerTable(device)
        self._device, self._engine = device, device.engine
        self.usage.clear()
        self._kept.clear()
        self._everybody = None if self._everybody is None else _Kept()
        self._owners = range(0)

    def _lines_of(self, owner: int, path: ProgramPath) -> dict[str, int]:
        """Time by what was said where; without what no program said."""
        found: dict[str, int] = {}
        for command, time_ps in path.commands_ps.items():
            note = self.commands.note_of(owner, command)
            if note is not None:
                found[note.title] = found.get(note.title, 0) + time_ps
        return found

    def look(self) -> None:
        self._num_looks += 1
        if self._kept and self._num_looks % LOOKS_PER_DRAIN == 0:
            self._drain()

    def _trace_kept(self) -> None:
        if self._kept:
            kept = range(min(self._kept), max(self._kept) + 1)
            self._engine.set_trace(True, kept if self._everybody is None else self._owners)
        else:
            self._engine.set_trace(False)

    def _drain(self) -> None:
        rows, memory_rows = self._engine.take_trace_rows()
        if not len(rows) and not len(memory_rows):
            return
        owners, memory_owners = rows[:, 1] >> OWNER_SHIFT, memory_rows[:, 1] >> OWNER_SHIFT
        if self._everybody is not None:
            self._everybody.add(rows, memory_rows)
        for owner, kept in self._kept.items():
            kept.add(rows[owners == owner], memory_rows[memory_owners == owner])
