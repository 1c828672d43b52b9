"""Writes a Perfetto trace as it comes: tracks, slices, counters, arrows; a bounded number of them.

The viewer counts nanoseconds, so times are rounded down to them there; slices carry their exact
picoseconds as arguments. A trace is a row of packets, so it is whole at any packet's end.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tilewright.report.perfetto.schema import COUNTER, SLICE_BEGIN, SLICE_END, messages
from tilewright.units import PS_PER_NS

SEQUENCE = 1  # all packets come from one writer

Argument = int | str


class Sink(Protocol):
    """What takes the bytes of a trace: a file, or a buffer."""

    def write(self, content: bytes, /) -> int: ...


class PerfettoWriter:
    """Slices and counters beyond ``limit`` are left out and counted; tracks are not."""

    def __init__(self, sink: Sink, *, limit: int) -> None:
        self.limit = limit
        self.num_events = 0
        self.num_left_out = 0
        self._sink = sink
        self._num_tracks = 0
        self._num_processes = 0

    @property
    def is_full(self) -> bool:
        return self.num_events >= self.limit

    def add_process(self, name: str) -> int:
        """A group of tracks; returns its number."""
        self._num_processes += 1
        return self._add_track(process={"pid": self._num_processes, "process_name": name})

    def add_track(self, name: str, process: int) -> int:
        """A track of slices; slices of one track never overlap."""
        return self._add_track(name=name, parent_uuid=process)

    def add_counter(self, name: str, process: int, unit: str) -> int:
        """A track of one value over time."""
        return self._add_track(name=name, parent_uuid=process, counter={"unit_name": unit})

    def add_slice(
        self,
        track: int,
        name: str,
        start_ps: int,
        end_ps: int,
        arguments: Mapping[str, Argument],
        flows: Sequence[int] = (),
    ) -> None:
        """An arrow goes from a slice to the next one with the same flow."""
        if not self._take():
            return
        exact = {"start_ps": start_ps, "end_ps": end_ps, **arguments}
        begin = messages["TrackEvent"](
            type=SLICE_BEGIN,
            track_uuid=track,
            name=name,
            flow_ids=flows,
            debug_annotations=[_annotation(key, value) for key, value in exact.items()],
        )
        self._event(start_ps, begin)
        self._event(end_ps, messages["TrackEvent"](type=SLICE_END, track_uuid=track))

    def add_value(self, track: int, at_ps: int, value: float) -> None:
        """A counter's value from now on."""
        if self._take():
            event = messages["TrackEvent"](
                type=COUNTER, track_uuid=track, double_counter_value=value
            )
            self._event(at_ps, event)

    def _take(self) -> bool:
        if self.is_full:
            self.num_left_out += 1
            return False
        self.num_events += 1
        return True

    def _add_track(self, **fields: Any) -> int:
        self._num_tracks += 1
        described = messages["TrackDescriptor"](uuid=self._num_tracks, **fields)
        self._write(messages["TracePacket"](track_descriptor=described))
        return self._num_tracks

    def _event(self, at_ps: int, event: Any) -> None:
        self._write(messages["TracePacket"](timestamp=at_ps // PS_PER_NS, track_event=event))

    def _write(self, packet: Any) -> None:
        packet.trusted_packet_sequence_id = SEQUENCE
        self._sink.write(messages["Trace"](packet=[packet]).SerializeToString())


def _annotation(name: str, value: Argument) -> Any:
    field = "int_value" if isinstance(value, int) else "string_value"
    return messages["DebugAnnotation"](name=name, **{field: value})
