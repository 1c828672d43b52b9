"""How commands reach PEs and their completions come back, over links and processors.

    host -> IO CPU -> M_CPU of each cube -> PE CPU
    host <- IO CPU <- M_CPU of each cube <- PE CPU

A processor takes its command time for each command that it hands on and for each completion that
it sends, one after the other in order of arrival: n commands that wait at t are done at
t + n command_ps. A cube completes when all its PEs have, a SIP when all its cubes have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.device.build import Device
from tilewright.device.pe import Pe, build_pe
from tilewright.engine import ServerSpec, TaskGraph
from tilewright.engine.core import NO_EFFECT
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord, SipCoord
from tilewright.machine.node import NodeKind
from tilewright.machine.route import Traffic
from tilewright.machine.spec import HostSpec


@dataclass(frozen=True, slots=True)
class Delivery:
    """A command under way: the tasks of its graph by which PEs have it, and how they answer."""

    graph: TaskGraph
    arrivals: Mapping[PeCoord, int]  # tasks of the graph
    answers: Mapping[PeCoord, int]  # signals that the answers of a PE's cube raise, until `end`
    end: int  # the task of the graph at whose end the host knows that all have answered


@dataclass(frozen=True, slots=True)
class _Command:
    """One that is being put into tasks."""

    graph: TaskGraph
    num_entries: Mapping[PeCoord, int]
    is_shared: bool
    spec: HostSpec
    effects: Mapping[PeCoord, int] | None
    raises: int | None

    def num_bytes(self, pes: Sequence[PeCoord]) -> int:
        """On the way to all these PEs."""
        counts = [self.num_entries[pe] for pe in pes]
        num_entries = max(counts) if self.is_shared else sum(counts)
        return self.spec.command_bytes + num_entries * self.spec.entry_bytes


@dataclass(slots=True)
class CommandPath:
    """The processors of a device, made at first use."""

    device: Device
    _pes: dict[PeCoord, Pe] = field(default_factory=dict)
    _processors: dict[int, int] = field(default_factory=dict)  # by node: a route of one server
    _num_deliveries: int = 0

    def pe(self, coord: PeCoord) -> Pe:
        """The units of a PE, the CPU among them."""
        if coord not in self._pes:
            self._pes[coord] = build_pe(self.device, coord)
        return self._pes[coord]

    def deliver(
        self,
        num_entries: Mapping[PeCoord, int],
        *,
        is_shared: bool,
        effects: Mapping[PeCoord, int] | None = None,
        raises: int | None = None,
    ) -> Delivery:
        """A command for PEs, of so many entries each; what is shared travels once for all.

        Each PE may have an effect when the command is there, and a signal is raised by it. Whoever
        is a PE answers by `answer`, once.
        """
        spec, host = self.device.machine.spec, self.device.machine.host
        command = _Command(TaskGraph(), num_entries, is_shared, spec.host, effects, raises)
        graph = command.graph
        arrivals: dict[PeCoord, int] = {}
        answers: dict[PeCoord, int] = {}
        ends = []
        self._num_deliveries += 1
        by_sip: dict[int, dict[int, list[PeCoord]]] = {}
        for pe in sorted(num_entries):
            by_sip.setdefault(pe.sip, {}).setdefault(pe.cube, []).append(pe)
        for sip, cubes in by_sip.items():
            io_cpu = io_cpu_of(self.device.machine, sip)
            of_sip = [pe for targets in cubes.values() for pe in targets]
            way = self.device.way(host, io_cpu, Traffic.REQUEST, 0)
            there = graph.transfer(way, command.num_bytes(of_sip))
            known = []
            for cube, targets in cubes.items():
                name = f"answers of sip{sip}.cube{cube} to command {self._num_deliveries}"
                signal = self.device.engine.add_signal(name)
                arrivals |= self._to_cube(command, io_cpu, targets, there)
                answers |= dict.fromkeys(targets, signal)
                m_cpu = self.device.machine.node_of(NodeKind.M_CPU, targets[0])
                answer = graph.hold(
                    self._processor(m_cpu),
                    spec.cube.m_cpu.command_ps,
                    waits=((signal, len(targets)),),
                )
                way = self.device.way(m_cpu, io_cpu, Traffic.RESPONSE, 0)
                known.append(graph.transfer(way, spec.host.command_bytes, after=(answer,)))
            hold_ps = spec.sip.io_cpu.command_ps
            sent = graph.hold(self._processor(io_cpu), hold_ps, after=tuple(known))
            way = self.device.way(io_cpu, host, Traffic.RESPONSE, 0)
            ends.append(graph.transfer(way, spec.host.command_bytes, after=(sent,)))
        return Delivery(graph, arrivals, answers, graph.timer(after=tuple(ends)))

    def _to_cube(
        self, command: "_Command", io_cpu: int, pes: Sequence[PeCoord], there: int
    ) -> dict[PeCoord, int]:
        """From the IO CPU to PEs of one cube; the tasks by which they have the command."""
        spec, graph = self.device.machine.spec, command.graph
        node_of, way_of = self.device.machine.node_of, self.device.way
        m_cpu = node_of(NodeKind.M_CPU, pes[0])
        handed_on = graph.hold(self._processor(io_cpu), spec.sip.io_cpu.command_ps, after=(there,))
        way = way_of(io_cpu, m_cpu, Traffic.REQUEST, 0)
        in_cube = graph.transfer(way, command.num_bytes(pes), after=(handed_on,))
        arrivals = {}
        for pe in pes:
            sent = graph.hold(self._processor(m_cpu), spec.cube.m_cpu.command_ps, after=(in_cube,))
            way = way_of(m_cpu, node_of(NodeKind.PE_CPU, pe), Traffic.REQUEST, pe.pe)
            at_pe = graph.transfer(way, command.num_bytes([pe]), after=(sent,))
            issue = self.pe(pe).issuer
            arrivals[pe] = graph.hold(
                issue.issue_route,
                issue.issue_ps,
                after=(at_pe,),
                raises=() if command.raises is None else ((command.raises, 1),),
                effect=NO_EFFECT if command.effects is None else command.effects[pe],
            )
        return arrivals

    def answer(self, graph: TaskGraph, pe: PeCoord, signal: int, after: Sequence[int]) -> int:
        """Add a PE's completion to a graph; the task at whose end its cube has it."""
        node_of, issue = self.device.machine.node_of, self.pe(pe).issuer
        cpu, m_cpu = node_of(NodeKind.PE_CPU, pe), node_of(NodeKind.M_CPU, pe)
        sent = graph.hold(issue.issue_route, issue.issue_ps, after=tuple(after))
        way = self.device.way(cpu, m_cpu, Traffic.RESPONSE, pe.pe)
        num_bytes = self.device.machine.spec.host.command_bytes
        return graph.transfer(way, num_bytes, after=(sent,), raises=((signal, 1),))

    def end(self, delivery: Delivery) -> None:
        """Give up the signals of a command whose last task has ended."""
        for signal in dict.fromkeys(delivery.answers.values()):
            self.device.engine.remove_signal(signal)

    def _processor(self, node: int) -> int:
        if node not in self._processors:
            engine, name = self.device.engine, self.device.machine.nodes[node].name
            server = engine.add_server(ServerSpec(name))
            self._processors[node] = engine.add_route([server])
        return self._processors[node]


def io_cpu_of(machine: Machine, sip: int) -> int:
    """Return the node of a SIP's IO CPU."""
    return next(
        number
        for number, node in enumerate(machine.nodes)
        if node.kind is NodeKind.IO_CPU and node.where == SipCoord(sip)
    )
