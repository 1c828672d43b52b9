"""A Perfetto trace read back: tracks by name, slices and values on them."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tilewright.report.perfetto.writer import COUNTER, SLICE_BEGIN, SLICE_END, messages

__all__ = ("ReadSlice", "ReadTrace", "read_trace")


@dataclass(slots=True)
class ReadSlice:
    """Times are the viewer's nanoseconds; ``arguments`` have the picoseconds."""

    name: str
    start_ns: int
    arguments: dict[str, Any]
    flows: list[int]
    end_ns: int = -1


@dataclass(slots=True)
class ReadTrace:
    """By (process, track)."""

    slices: dict[tuple[str, str], list[ReadSlice]] = field(default_factory=dict)
    values: dict[tuple[str, str], list[tuple[int, float]]] = field(default_factory=dict)

    def flows(self) -> dict[int, list[ReadSlice]]:
        """The slices of each arrow, in order of time."""
        found: dict[int, list[ReadSlice]] = {}
        for slices in self.slices.values():
            for one in slices:
                for flow in one.flows:
                    found.setdefault(flow, []).append(one)
        return {flow: sorted(each, key=lambda one: one.start_ns) for flow, each in found.items()}


def read_trace(content: bytes, *, is_whole: bool = True) -> ReadTrace:
    """Refuses a slice that ends before it begins, overlaps another, or is never ended."""
    trace = messages["Trace"].FromString(content)
    names: dict[int, tuple[str, str]] = {}
    found = ReadTrace()
    opened: dict[int, ReadSlice] = {}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            process = names.get(track.parent_uuid, ("", ""))[0]
            names[track.uuid] = (
                (track.process.process_name, "")
                if track.HasField("process")
                else (process, track.name)
            )
            continue
        event = packet.track_event
        name = names[event.track_uuid]
        if event.type == SLICE_BEGIN:
            assert event.track_uuid not in opened
            arguments = {
                note.name: note.int_value if note.HasField("int_value") else note.string_value
                for note in event.debug_annotations
            }
            one = ReadSlice(event.name, packet.timestamp, arguments, list(event.flow_ids))
            opened[event.track_uuid] = one
            found.slices.setdefault(name, []).append(one)
        elif event.type == SLICE_END:
            one = opened.pop(event.track_uuid)
            assert packet.timestamp >= one.start_ns
            one.end_ns = packet.timestamp
        else:
            assert event.type == COUNTER
            value = (packet.timestamp, event.double_counter_value)
            found.values.setdefault(name, []).append(value)
    assert not (opened and is_whole)  # what an interruption cuts off stays open
    _check_no_overlap(found)
    return found


def _check_no_overlap(trace: ReadTrace) -> None:
    for name, slices in trace.slices.items():
        ordered = sorted(slices, key=lambda one: (one.arguments["start_ps"], one.end_ns))
        for one, following in pairwise(ordered):
            assert one.arguments["end_ps"] <= following.arguments["start_ps"], name
