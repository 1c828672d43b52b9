"""Latencies that no schedule of a program avoids, whatever its bytes and flops: ADR 0030."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.device.least_time import (
    AccessTime,
    CommandTime,
    access_time,
    between_ps,
    command_times,
)
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.units import flit_ps

NO_COMMAND = CommandTime(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Steps of a launch that follow one another in every schedule of it.

    Each PE of ``pes`` gets its command, loads, computes, stores what it has found, and answers.
    ``messages`` name a sender and a receiver, whose result depends on what the sender loads.
    """

    pes: tuple[PeCoord, ...]
    commands: int = 1
    """Rounds of commands, as of rings that PEs are told of before a launch. 0: the time counts from
    the start of the programs to their end."""
    moves: bool = True  # else nothing has to be loaded, computed or stored
    loads: int = 1  # of which each needs an address that the one before it has loaded
    computes: bool = True
    walks: bool = True  # no page has been translated by these PEs before
    opens: bool = True  # no row has been opened, and no two PEs read the same slice
    all_store: bool = True  # every PE stores a result of what it has loaded; else one of them does
    messages: tuple[tuple[PeCoord, PeCoord], ...] = ()
    read_from: Mapping[PeCoord, PeCoord] = field(default_factory=dict)
    """Whose slice a PE reads, where it is not its own."""
    write_to: Mapping[PeCoord, PeCoord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies of a path: all of it, and what of it comes before and behind the work of a
    resource that all PEs share evenly.
    """

    path_ps: int  # of the longest path, in which nothing but latency counts
    hbm_ps: int  # beside the data of a slice
    link_ps: int  # beside the bytes on the links of DMAs
    unit_ps: int  # beside the work of GEMM or vector units
    message_ps: int  # beside the bytes of messages on links


def latency_of(machine: Machine, path: Path) -> Latency:
    """Return the least latencies of a path on a machine on which nothing waits or refreshes."""
    if not path.pes:
        return Latency(0, 0, 0, 0, 0)
    steps = _Steps(machine, path)
    rounds_ps = max(0, path.commands - 1) * max(map(steps.command_ps, path.pes))
    around_ps = rounds_ps + min(steps.command(pe).there_ps for pe in path.pes)
    around_ps += min(steps.command(pe).back_ps for pe in path.pes)
    load_ps = min(map(steps.first_load_ps, path.pes))
    store_ps = min(map(steps.store_ps, path.pes))
    flit_time_ps = flit_ps(
        flit_bytes=machine.spec.flit_bytes,
        bytes_per_us=machine.spec.cube.noc.attach_bytes_per_us,
    )
    alone_ps = around_ps + load_ps + steps.compute_ps + store_ps
    return Latency(
        path_ps=rounds_ps + steps.longest_ps(),
        hbm_ps=around_ps + min(map(steps.beside_data_ps, path.pes)),
        link_ps=alone_ps - flit_time_ps,
        unit_ps=alone_ps,
        message_ps=alone_ps + steps.send_ps,
    )


class _Steps:
    """Least times of the steps of a path, by PE."""

    def __init__(self, machine: Machine, path: Path) -> None:
        pe = machine.spec.pe
        self._machine, self._path = machine, path
        self._issue_ps, self._dispatch_ps = pe.cpu.command_ps, pe.scheduler.command_ps
        self._known_ps = min(pe.mmu.hit_ps, pe.mmu.walk_ps)
        translation_ps = pe.mmu.walk_ps if path.walks else self._known_ps
        self._commands = command_times(machine, path.pes) if path.commands else {}
        self._accesses: dict[tuple[PeCoord, bool, bool], AccessTime] = {}
        self.compute_ps = 2 * self._dispatch_ps if path.computes else 0
        """Operands are read from the TCM, then the unit begins."""
        self._until_sent_ps = self._issue_ps + translation_ps + self._dispatch_ps
        """From a program's start until its first access sets out."""
        self.send_ps = 2 * self._dispatch_ps  # a part of the command, and a look at the credits

    def command(self, pe: PeCoord) -> CommandTime:
        return self._commands.get(pe, NO_COMMAND)

    def command_ps(self, pe: PeCoord) -> int:
        return self.command(pe).there_ps + self.command(pe).back_ps

    def _access(self, pe: PeCoord, *, is_write: bool, is_open: bool) -> AccessTime:
        key = pe, is_write, is_open
        if key not in self._accesses:
            owners = self._path.write_to if is_write else self._path.read_from
            self._accesses[key] = access_time(
                self._machine, pe, owners.get(pe, pe), is_write=is_write, is_open=is_open
            )
        return self._accesses[key]

    def _first_read(self, pe: PeCoord) -> AccessTime:
        return self._access(pe, is_write=False, is_open=not self._path.opens)

    def first_load_ps(self, pe: PeCoord) -> int:
        return self._until_sent_ps + self._first_read(pe).total_ps

    def beside_data_ps(self, pe: PeCoord) -> int:
        """Return the time before a slice's first data, and behind its last."""
        return self.first_load_ps(pe) - self._first_read(pe).data_ps

    def _loads_ps(self, pe: PeCoord) -> int:
        """Return the time of all loads that follow one another.

        A command is issued when its addresses are known (ADR 0008).
        """
        read = self._access(pe, is_write=False, is_open=True)
        next_ps = self._issue_ps + self._known_ps + self._dispatch_ps + read.total_ps
        return self.first_load_ps(pe) + (self._path.loads - 1) * next_ps

    def store_ps(self, pe: PeCoord) -> int:
        """Return the time of a store; what was computed goes to the TCM first."""
        write = self._access(pe, is_write=True, is_open=True)
        return (1 + self._path.computes) * self._dispatch_ps + write.total_ps

    def longest_ps(self) -> int:
        """Return the time of the longest path, of one PE or of two with a message between them."""
        path, pes = self._path, self._path.pes
        found = [max(map(self.command_ps, pes))]
        if not path.moves:
            return found[0]
        if path.all_store:
            found += (self._before_ps(pe) + self._behind_ps(pe) for pe in pes)
        else:
            found.append(min(map(self._before_ps, pes)) + min(map(self._behind_ps, pes)))
        for sender, receiver in path.messages:
            ends_ps = self._before_ps(sender) + self._behind_ps(receiver)
            found.append(ends_ps + self.send_ps + between_ps(self._machine, sender, receiver))
        return max(found)

    def _before_ps(self, pe: PeCoord) -> int:
        """Return the time from the host's submission until a PE has computed something."""
        return self.command(pe).there_ps + self._loads_ps(pe) + self.compute_ps

    def _behind_ps(self, pe: PeCoord) -> int:
        """Return the time from then until the host knows that it is stored."""
        return self.store_ps(pe) + self.command(pe).back_ps
