"""The messages of Perfetto's trace format that we write, as tables of field numbers.

The numbers are those of the public schema (``protos/perfetto/trace``); whatever is not here we do
not use. The messages live in a pool of their own, beside whatever else a process has loaded.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

SLICE_BEGIN, SLICE_END, COUNTER = 1, 2, 4  # TrackEvent.Type

_PACKAGE = "perfetto.protos"
_SCALARS = {
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "fixed64": FieldDescriptorProto.TYPE_FIXED64,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "string": FieldDescriptorProto.TYPE_STRING,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
}
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
            is_repeated = kind.endswith("*")
            plain = kind.rstrip("*")
            field = described.field.add(name=name, number=number)
            field.label = (
                FieldDescriptorProto.LABEL_REPEATED
                if is_repeated
                else FieldDescriptorProto.LABEL_OPTIONAL
            )
            if plain in _SCALARS:
                field.type = _SCALARS[plain]
            else:
                field.type = FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{plain}"
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
