"""How commands reach PEs and their completions come back, over links and processors.

    host -> IO CPU -> M_CPU of each cube -> PE CPU
    host <- IO CPU <- M_CPU of each cube <- PE CPU

A processor takes its command time for each command that it hands on and for each completion that
it sends. A cube completes when all its PEs have, a SIP when all its cubes have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.device.build import Device
from tilewright.device.command import CommandProcessor
from tilewright.device.pe import Pe, build_pe
from tilewright.engine import TaskGraph
from tilewright.engine.rows import NO_EFFECT
from tilewright.machine.coords import PeCoord, SipCoord
from tilewright.machine.node import NodeKind
from tilewright.machine.route_level import Traffic

__all__ = ("CommandPath", "Delivery")


@dataclass(frozen=True, slots=True)
class Delivery:
    """A command under way: the tasks of its graph by which PEs have it, and how they answer."""

    graph: TaskGraph
    arrivals: Mapping[PeCoord, int]  # tasks of the graph
    answers: Mapping[PeCoord, int]  # signals that the answers of a PE's cube raise
    end: int  # the task of the graph at whose end the host knows that all have answered


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
        pes: Sequence[PeCoord],
        num_entries: int,
        effects: Mapping[PeCoord, int] | None = None,
    ) -> Delivery:
        """A command for PEs, with so many entries; each may have an effect when it is there.

        Whoever is a PE answers by `answer`, once.
        """
        graph = TaskGraph()
        spec = self.device.machine.spec
        num_bytes = spec.host.command_bytes + num_entries * spec.host.entry_bytes
        arrivals: dict[PeCoord, int] = {}
        answers: dict[PeCoord, int] = {}
        ends = []
        self._num_deliveries += 1
        for sip, cubes in _by_sip(pes).items():
            io_cpu = self._io_cpu(sip)
            there = graph.transfer(self._route(self.device.machine.host, io_cpu), num_bytes)
            cube_ends = []
            for cube, targets in cubes.items():
                m_cpu = self._m_cpu(targets[0])
                sent = graph.hold(
                    self._processor(io_cpu), spec.sip.io_cpu.command_ps, after=(there,)
                )
                in_cube = graph.transfer(self._route(io_cpu, m_cpu), num_bytes, after=(sent,))
                signal = self._signal(sip, cube)
                for pe in targets:
                    effect = NO_EFFECT if effects is None else effects[pe]
                    arrivals[pe] = self._to_pe(graph, m_cpu, pe, num_bytes, in_cube, effect)
                    answers[pe] = signal
                cube_ends.append(self._from_cube(graph, io_cpu, m_cpu, signal, len(targets)))
            known = graph.hold(
                self._processor(io_cpu), spec.sip.io_cpu.command_ps, after=tuple(cube_ends)
            )
            way = self._back(io_cpu, self.device.machine.host)
            ends.append(graph.transfer(way, spec.host.command_bytes, after=(known,)))
        end = graph.timer(after=tuple(ends))
        return Delivery(graph, arrivals, answers, end)

    def _to_pe(
        self, graph: TaskGraph, m_cpu: int, pe: PeCoord, num_bytes: int, in_cube: int, effect: int
    ) -> int:
        spec, cpu = self.device.machine.spec, self._cpu_node(pe)
        sent = graph.hold(self._processor(m_cpu), spec.cube.m_cpu.command_ps, after=(in_cube,))
        there = graph.transfer(self._route(m_cpu, cpu, pe.pe), num_bytes, after=(sent,))
        issue = self.pe(pe).issuer
        return graph.hold(issue.issue_route, issue.issue_ps, after=(there,), effect=effect)

    def _from_cube(
        self, graph: TaskGraph, io_cpu: int, m_cpu: int, signal: int, num_answers: int
    ) -> int:
        spec = self.device.machine.spec
        known = graph.hold(
            self._processor(m_cpu), spec.cube.m_cpu.command_ps, waits=((signal, num_answers),)
        )
        return graph.transfer(self._back(m_cpu, io_cpu), spec.host.command_bytes, after=(known,))

    def answer(self, graph: TaskGraph, pe: PeCoord, signal: int, after: Sequence[int]) -> int:
        """Add a PE's completion to a graph; the task at whose end its cube has it."""
        m_cpu, issue = self._m_cpu(pe), self.pe(pe).issuer
        sent = graph.hold(issue.issue_route, issue.issue_ps, after=tuple(after))
        way = self._back(self._cpu_node(pe), m_cpu, pe.pe)
        num_bytes = self.device.machine.spec.host.command_bytes
        return graph.transfer(way, num_bytes, after=(sent,), raises=((signal, 1),))

    def _signal(self, sip: int, cube: int) -> int:
        name = f"answers of sip{sip}.cube{cube} to command {self._num_deliveries}"
        return self.device.engine.add_signal(name)

    def _processor(self, node: int) -> int:
        if node not in self._processors:
            machine, engine = self.device.machine, self.device.engine
            place = machine.nodes[node]
            is_io = place.kind is NodeKind.IO_CPU
            spec = machine.spec.sip.io_cpu if is_io else machine.spec.cube.m_cpu
            server = engine.add_server(CommandProcessor(place.name, spec).server())
            self._processors[node] = engine.add_route([server])
        return self._processors[node]

    def _io_cpu(self, sip: int) -> int:
        nodes = self.device.machine.nodes
        return next(
            number
            for number, node in enumerate(nodes)
            if node.kind is NodeKind.IO_CPU and node.where == SipCoord(sip)
        )

    def _m_cpu(self, pe: PeCoord) -> int:
        return self.device.machine.node_of(NodeKind.M_CPU, pe)

    def _cpu_node(self, pe: PeCoord) -> int:
        return self.device.machine.node_of(NodeKind.PE_CPU, pe)

    def _route(self, source: int, target: int, spread: int = 0) -> int:
        return self.device.way(source, target, Traffic.REQUEST, spread)

    def _back(self, source: int, target: int, spread: int = 0) -> int:
        return self.device.way(source, target, Traffic.RESPONSE, spread)


def _by_sip(pes: Sequence[PeCoord]) -> dict[int, dict[int, list[PeCoord]]]:
    found: dict[int, dict[int, list[PeCoord]]] = {}
    for pe in sorted(pes):
        found.setdefault(pe.sip, {}).setdefault(pe.cube, []).append(pe)
    return found
