"""A timeline of a run: launches, units and DMA channels of PEs, links; written while it runs."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tilewright.analysis.listener import LOOKS_PER_DRAIN, SubmittedLaunch
from tilewright.analysis.trace.commands import CommandBook, CommandNote
from tilewright.analysis.trace.dma import DmaJob, DmaJobs, DmaWay
from tilewright.analysis.trace.links import BusyBuckets
from tilewright.analysis.trace.servers import ServerKind, ServerTable, TracedServer
from tilewright.device.build import Device
from tilewright.engine import TraceRecord
from tilewright.engine.core import OWNER_SHIFT
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name
from tilewright.report.perfetto.writer import PerfettoWriter, Sink
from tilewright.runtime.request import LaunchReport

BUCKET_PS = 250_000  # of link counters
PERCENT = 100
MESSAGES, SIGNAL_SHIFT = 1 << 63, 32  # numbers of arrows beyond all loads

_UNIT_KINDS = (ServerKind.CPU, ServerKind.GEMM, ServerKind.VECTOR, ServerKind.TCM_PORT)


@dataclass(slots=True)
class _Owner:
    """The stream of a PE in a launch; a packet belongs to the last command issued before it."""

    pe: PeCoord
    launch: str
    kernel: str
    issues: list[int] = field(default_factory=list)  # packet ids
    last_arrow: int = -1  # the last command whose operands have their arrows
    messages: set[int] = field(default_factory=set)  # commands whose message has its arrow

    def command_of(self, packet: int) -> int:
        return bisect_right(self.issues, packet) - 1


class TraceRecorder:
    """Takes the engine's trace and writes it; observes launches to know whose packets they are."""

    def __init__(self, device: Device, sink: Sink, *, limit: int) -> None:
        self.commands = CommandBook(limit=limit)
        self.writer = PerfettoWriter(sink, limit=limit)
        self._engine = device.engine
        self._servers = ServerTable(device)
        self._owners: dict[int, _Owner] = {}
        self._processes: dict[str, int] = {}
        self._tracks: dict[tuple[str, str], int] = {}
        self._ends_ps: dict[tuple[str, str], list[int]] = {}  # when the last slice of each ends
        self._links = BusyBuckets(bucket_ps=BUCKET_PS)
        self._dma = DmaJobs()
        self._num_looks = 0
        self._engine.set_trace(True)

    # -- what happens ----------------------------------------------------------------------------

    def launch_submitted(self, launch: SubmittedLaunch) -> None:
        for owner, pe in launch.owners.items():
            self._owners[owner] = _Owner(pe, launch.name, launch.kernel)

    def launch_completed(self, report: LaunchReport) -> None:
        arguments = {"programs": report.num_programs}
        times_ps = report.submitted_ps, report.completed_ps
        track = self._free_track("host", "launches", *times_ps)
        self.writer.add_slice(track, report.name, *times_ps, arguments)

    def device_built(self, device: Device) -> None:
        """Take the trace of this device from now on; write what there is of the one before."""
        self.drain()
        self._engine = device.engine
        self._servers = ServerTable(device)
        self._engine.set_trace(True)

    def look(self) -> None:
        """Write every now and then, so that little is kept."""
        self._num_looks += 1
        if self._num_looks % LOOKS_PER_DRAIN == 0:
            self.drain()

    def drain(self) -> None:
        """Write what has been traced since the last time."""
        rows, _ = self._engine.take_trace_rows()
        if len(rows):
            used, places = np.unique(rows[:, 0], return_inverse=True)
            servers = [self._servers[number] for number in used.tolist()]
            links = rows[np.array([each.kind is ServerKind.LINK for each in servers])[places]]
            self._links.add(links[:, 0], links[:, 3], links[:, 4])
            for row in rows[np.array([_is_told(each) for each in servers])[places]].tolist():
                self._add(TraceRecord(*row))
        self._add_values(self._engine.now_ps)

    def close(self) -> None:
        """The rest; also of an engine that was stopped. The sink stays open."""
        self.drain()
        self._add_values(None)
        self._add_jobs(self._dma.rest())

    # -- rows ------------------------------------------------------------------------------------

    def _add(self, row: TraceRecord) -> None:
        server, number = self._servers[row.server], row.packet_id >> OWNER_SHIFT
        owner = self._owners.get(number)
        if owner is None:
            return  # the host's own
        if server.kind is ServerKind.CPU:
            owner.issues.append(row.packet_id)
        if server.kind is ServerKind.LINK:
            self._add_packet(server, number, owner, row)
        else:
            self._add_work(server, number, owner, row)

    def _add_work(self, server: TracedServer, number: int, owner: _Owner, row: TraceRecord) -> None:
        command = owner.command_of(row.packet_id)
        note = self.commands.note_of(number, command)
        flows: list[int] = []
        if note is not None and owner.last_arrow != command and _meets(note, server):
            owner.last_arrow = command
            flows = _arrows(note, number, command)
        track = self._track(server.name.removesuffix(f".{server.unit}"), server.unit)
        arguments = _arguments(owner, command, note) | {"ready_ps": row.ready_ps}
        title = _title(owner, note)
        self.writer.add_slice(track, title, row.start_ps, row.tail_ps, arguments, flows)

    def _add_packet(
        self, server: TracedServer, number: int, owner: _Owner, row: TraceRecord
    ) -> None:
        command, packet = owner.command_of(row.packet_id), row.packet_id
        is_long = row.tail_ps - row.start_ps > server.flit_ps
        if server.leaves == owner.pe:
            self._add_jobs(
                self._dma.set_out(number, command, packet, row.ready_ps, is_long=is_long)
            )
        if server.reaches is not None:
            way = DmaWay.SEND
            if server.reaches == owner.pe:
                way = _way(self.commands.note_of(number, command), is_long)
            back_ps = row.tail_ps + server.latency_ps
            self._add_jobs(self._dma.come_back(packet, back_ps, way))

    def _add_jobs(self, jobs: Iterable[DmaJob]) -> None:
        for job in jobs:
            owner = self._owners[job.owner]
            note = self.commands.note_of(job.owner, job.command)
            track = self._free_track(place_name(owner.pe), job.way.value, job.start_ps, job.end_ps)
            arguments = _arguments(owner, job.command, note) | {"packets": job.num_packets}
            flows: list[int] = []
            if note is not None and note.message is not None:
                way = DmaWay.SEND if note.what == "send" else DmaWay.READ
                if job.way is way and job.command not in owner.messages:
                    owner.messages.add(job.command)
                    flows = _arrows(note, job.owner, job.command)
            elif job.way is DmaWay.READ:
                flows = [_flow(job.owner, job.command)]
            title = _title(owner, note)
            self.writer.add_slice(track, title, job.start_ps, job.end_ps, arguments, flows)

    # -- links -----------------------------------------------------------------------------------

    def _add_values(self, before_ps: int | None) -> None:
        for server, at_ps, share in self._links.take(before_ps):
            name = self._servers[server].name
            key = ("links", name)
            if key not in self._tracks:
                process = self._process("links")
                self._tracks[key] = self.writer.add_counter(name, process, "% busy")
            self.writer.add_value(self._tracks[key], at_ps, round(PERCENT * share, 2))

    # -- tracks ----------------------------------------------------------------------------------

    def _process(self, name: str) -> int:
        if name not in self._processes:
            self._processes[name] = self.writer.add_process(name)
        return self._processes[name]

    def _track(self, place: str, name: str) -> int:
        key = place, name
        if key not in self._tracks:
            self._tracks[key] = self.writer.add_track(name, self._process(place))
        return self._tracks[key]

    def _free_track(self, place: str, name: str, start_ps: int, end_ps: int) -> int:
        """A track that is free by then: what overlaps lies beside each other."""
        ends_ps = self._ends_ps.setdefault((place, name), [])
        number = next((n for n, free_ps in enumerate(ends_ps) if free_ps <= start_ps), len(ends_ps))
        ends_ps[number : number + 1] = [end_ps]
        return self._track(place, name if number == 0 else f"{name} {number + 1}")


def _is_told(server: TracedServer) -> bool:
    """Tell packet by packet: at units, and on links at the DMA of a PE."""
    at_dma = server.leaves is not None or server.reaches is not None
    return at_dma or server.kind in _UNIT_KINDS


def _way(note: CommandNote | None, is_long: bool) -> DmaWay:
    """Of a packet that is back with data, which are more than a flit, or with a confirmation."""
    if note is not None and note.what in ("load", "store"):
        return DmaWay.READ if note.what == "load" else DmaWay.WRITE
    return DmaWay.READ if is_long else DmaWay.WRITE


def _meets(note: CommandNote, server: TracedServer) -> bool:
    """Whether the arrows of a command end here: at its work, of a received message at its read."""
    if note.what == "recv":
        return server.unit == "tcm.read"
    return server.kind in (ServerKind.GEMM, ServerKind.VECTOR)


def _arrows(note: CommandNote, owner: int, command: int) -> list[int]:
    """From what was loaded or received to its use, and from a send to its receive."""
    found = [_flow(owner, source) for source in note.sources if note.what != "send"]
    if note.message is not None:
        signal, place = note.message
        found.append(MESSAGES + (signal << SIGNAL_SHIFT) + place)
    if note.what == "recv":
        found.append(_flow(owner, command))
    return found


def _flow(owner: int, command: int) -> int:
    return (owner << OWNER_SHIFT) + command + 1


def _title(owner: _Owner, note: CommandNote | None) -> str:
    return owner.kernel if note is None else note.title


def _arguments(owner: _Owner, command: int, note: CommandNote | None) -> dict[str, int | str]:
    found: dict[str, int | str] = {
        "launch": owner.launch,
        "kernel": owner.kernel,
        "command": command,
    }
    if note is not None:
        found |= {"program": note.program, "line": note.place}
    return found
