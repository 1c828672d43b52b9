"""The messages of Perfetto's trace format that we write, as tables of field numbers.

The numbers are those of the public schema (``protos/perfetto/trace``); whatever is not here we do
not use. The messages live in a pool of their own, beside whatever else a process has loaded.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from tilewright.units import PS_PER_NS

SLICE_BEGIN, SLICE_END, COUNTER = 1, 2, 4  # TrackEvent.Type

_PACKAGE = "perfetto.protos"
# A star: repeated. An enum is written as the int32 that it is on the wire.
_MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Trace": {"packet": (1, "TracePacket*")},
    "TracePacket": {
        "timestamp": (8, "uint64"),
        "trusted_packet_sequence_id": (10, "uint32"),
        "track_event": (11, "TrackEvent"),
        "track_descriptor": (60, "TrackDescriptor"),
    },
    "TrackDescriptor": {
        "uuid": (1, "uint64"),
        "name": (2, "string"),
        "process": (3, "ProcessDescriptor"),
        "parent_uuid": (5, "uint64"),
        "counter": (8, "CounterDescriptor"),
    },
    "ProcessDescriptor": {"pid": (1, "int32"), "process_name": (6, "string")},
    "CounterDescriptor": {"unit_name": (6, "string")},
    "TrackEvent": {
        "debug_annotations": (4, "DebugAnnotation*"),
        "type": (9, "int32"),
        "track_uuid": (11, "uint64"),
        "name": (23, "string"),
        "double_counter_value": (44, "double"),
        "flow_ids": (47, "fixed64*"),
    },
    "DebugAnnotation": {
        "int_value": (4, "int64"),
        "string_value": (6, "string"),
        "name": (10, "string"),
    },
}


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="tilewright/perfetto.proto", package=_PACKAGE, syntax="proto2")
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            plain = kind.rstrip("*")
            label = "LABEL_OPTIONAL" if plain == kind else "LABEL_REPEATED"
            field = described.field.add(name=name, number=number, label=label)
            if plain in _MESSAGES:
                field.type = FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{plain}"
            else:
                field.type = FieldDescriptorProto.Type.Value(f"TYPE_{plain.upper()}")
    return file


def _classes() -> Mapping[str, Any]:
    pool = DescriptorPool()
    pool.Add(_file())
    return MappingProxyType(
        {
            name: GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
            for name in _MESSAGES
        }
    )


messages: Mapping[str, Any] = _classes()
"""Classes by the name of the message: ``messages["TracePacket"]()``."""


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
