"""From the text form back to a graph: the text says everything but the values of parameters."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from types import MappingProxyType
from typing import Any, get_type_hints

from tilewright.attention.graph import (
    FORMAT,
    Branch,
    DType,
    Estimate,
    EstimateOver,
    Field,
    FieldWrite,
    FlowKind,
    Geometry,
    Graph,
    Inherit,
    Leading,
    Node,
    Op,
    Output,
    Parameter,
    Side,
    StateVar,
    StateWrite,
    ValueType,
    verify_graph,
)
from tilewright.attention.graph.text import VERSION
from tilewright.errors import GraphError, TilewrightError

_NAME = r"[\w.]+"
_TYPE = (
    r"(?P<format>[A-Z]+) (?P<dtype>\w+) \[(?P<leading>[1S-]), (?P<shape>[\d, ]+)\]"
    r"(?: tokens:(?P<tokens>[\d,]+))?"
)
_HEAD = re.compile(r'graph (?P<name>".*") version (?P<version>\d+)')
_GEOMETRY = re.compile(
    r"geometry (?P<kind>\w+) page_size=(?P<page>\d+) query_heads=(?P<heads>\d+)"
    r" key_dim=(?P<key>\d+) value_dim=(?P<value>\d+) kv=(?P<kv>\w+) query=(?P<query>\w+)"
    r" field=(?P<field>\w+)"
)
_INPUT = re.compile(rf"input (?P<name>{_NAME}): {_TYPE}")
_FIELD = re.compile(rf"field (?P<name>{_NAME}): {_TYPE} = (?P<initial>\S+)")
_STATE = re.compile(
    rf"state (?P<name>{_NAME}): {_TYPE} = (?P<initial>\S+) inherit (?P<inherit>\w+)"
)
_PARAMETER = re.compile(
    rf"parameter (?P<name>{_NAME}): {_TYPE} layers=(?P<layers>\d+) rows=(?P<rows>.*)"
    r" sha256=(?P<digest>\w+)"
)
_NODE = re.compile(
    rf"(?P<number>%\d+) = (?P<op>\w+)(?:<(?P<attributes>.*)>)?\((?P<operands>[%\d, ]*)\) : {_TYPE}"
)
_WRITE = re.compile(rf"(?P<verb>write|save) (?P<target>{_NAME}) <- (?P<value>%\d+)")
_ATTEND = re.compile(
    r"attend(?: selection=(?P<selection>%\d+))?(?: gate=(?P<gate>%\d+))?"
    r"(?: logits=(?P<logits>%\d+) values=(?P<values>%\d+) over=(?P<over>\w+))?"
)
_ATTRIBUTE = re.compile(r"(\w+)=")


def parse_graph(
    text: str, ops: Mapping[str, type[Op]], parameters: Mapping[str, Any] | None = None
) -> Graph:
    """The verified graph of a text that `graph_text` wrote.

    ``parameters`` gives values by name; the text has only their digests, and a parameter without
    values is None until a backend asks for it.
    """
    reader = _Reader(ops, dict(parameters or {}))
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            reader.read(line)
        except (TilewrightError, KeyError, ValueError, TypeError) as error:
            where, found = f"graph text, line {number}", f"{line.strip()!r} ({error})"
            fix = "write it as graph_text does"
            raise GraphError(where, found, "a line of a graph", fix) from error
    graph = reader.finish()
    verify_graph(graph)
    return graph


@dataclass
class _Reader:
    ops: Mapping[str, type[Op]]
    values: dict[str, Any]
    name: str | None = None
    geometry: Geometry | None = None
    partial_pages: bool = False
    inputs: list[tuple[str, ValueType]] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    states: list[StateVar] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    field_writes: list[FieldWrite] = field(default_factory=list)
    state_writes: list[StateWrite] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    output_source: str = ""
    side: Side | None = None
    nodes: dict[str, Node] = field(default_factory=dict)

    def read(self, line: str) -> None:
        body, _, source = line.partition("  # ")
        body = body.strip()
        if not body:
            return
        if body in (f"{Side.CACHE}:", f"{Side.INDEXER}:"):
            self.side, self.nodes = Side(body[:-1]), {}
        elif body == "partial pages":
            self.partial_pages = True
        elif body.startswith("%"):
            self._node(_match(_NODE, body), source)
        elif body.startswith("attend"):
            self._attend(_match(_ATTEND, body), source)
        elif body.startswith(("write ", "save ")):
            self._write(_match(_WRITE, body), source)
        else:
            self._declaration(body)

    def finish(self) -> Graph:
        if self.name is None or self.geometry is None:
            fix = "begin with the lines 'graph ...' and 'geometry ...'"
            raise GraphError("graph text", "no head", "a graph line and a geometry line", fix)
        return Graph(
            name=self.name,
            geometry=self.geometry,
            fields=tuple(self.fields),
            states=tuple(self.states),
            parameters=tuple(self.parameters),
            inputs=tuple(self.inputs),
            field_writes=tuple(self.field_writes),
            state_writes=tuple(self.state_writes),
            output=Output(tuple(self.branches), self.output_source),
            partial_pages=self.partial_pages,
        )

    def _declaration(self, body: str) -> None:
        match body.partition(" ")[0]:
            case "graph":
                head = _match(_HEAD, body)
                if int(head["version"]) != VERSION:
                    raise ValueError(f"version {head['version']}, this reads {VERSION}")
                self.name = json.loads(head["name"])
            case "geometry":
                self.geometry = _geometry(_match(_GEOMETRY, body))
            case "input":
                item = _match(_INPUT, body)
                self.inputs.append((item["name"], _type(item)))
            case "field":
                item = _match(_FIELD, body)
                self.fields.append(Field(item["name"], _type(item), float(item["initial"])))
            case "state":
                item = _match(_STATE, body)
                start, inherit = float(item["initial"]), Inherit(item["inherit"])
                self.states.append(StateVar(item["name"], _type(item), start, inherit))
            case "parameter":
                self._parameter(_match(_PARAMETER, body))
            case word:
                raise ValueError(f"the word {word!r} begins no line of a graph")

    def _parameter(self, item: re.Match[str]) -> None:
        rows = MappingProxyType(dict(json.loads(item["rows"])))
        values = self.values.get(item["name"])
        layers, digest = int(item["layers"]), item["digest"]
        made = Parameter(item["name"], _type(item), layers, values, digest, rows)
        self.parameters.append(made)

    def _node(self, item: re.Match[str], source: str) -> None:
        if self.side is None or item["number"] in self.nodes:
            raise ValueError("a value outside a side, or with a number that is taken")
        op = _op(self.ops[item["op"]], item["attributes"])
        inputs = tuple(self.nodes[name] for name in item["operands"].replace(",", " ").split())
        self.nodes[item["number"]] = Node(op, inputs, _type(item), source)

    def _write(self, item: re.Match[str], source: str) -> None:
        value = self.nodes[item["value"]]
        if self.side is not (Side.CACHE if item["verb"] == "write" else Side.INDEXER):
            raise ValueError("a root of the other side")
        if item["verb"] == "write":
            self.field_writes.append(FieldWrite(item["target"], value, source))
        else:
            self.state_writes.append(StateWrite(item["target"], value, source))

    def _attend(self, item: re.Match[str], source: str) -> None:
        if self.side is not Side.INDEXER:
            raise ValueError("a root of the other side")
        estimate = None
        if item["logits"]:
            logits, values = self.nodes[item["logits"]], self.nodes[item["values"]]
            estimate = Estimate(logits, values, EstimateOver(item["over"]))
        selection = self.nodes[item["selection"]] if item["selection"] else None
        gate = self.nodes[item["gate"]] if item["gate"] else None
        self.branches.append(Branch(selection, gate, estimate))
        self.output_source = source


def _match(pattern: re.Pattern[str], body: str) -> re.Match[str]:
    found = pattern.fullmatch(body)
    if found is None:
        raise ValueError("it has another form")
    return found


def _type(item: re.Match[str]) -> ValueType:
    shape = tuple(int(size) for size in item["shape"].split(","))
    tokens = tuple(int(axis) for axis in (item["tokens"] or "").split(",") if axis)
    kind, leading = FORMAT[item["format"]], Leading(item["leading"])
    return ValueType(kind, leading, shape, DType(item["dtype"]), tokens)


def _geometry(item: re.Match[str]) -> Geometry:
    return Geometry(
        kind=FlowKind(item["kind"]),
        page_size=int(item["page"]),
        query_heads=int(item["heads"]),
        key_dim=int(item["key"]),
        value_dim=int(item["value"]),
        kv_dtype=DType(item["kv"]),
        query_dtype=DType(item["query"]),
        field_dtype=DType(item["field"]),
    )


def _op(definition: type[Op], attributes: str | None) -> Op:
    """Attributes are written as name=literal; a literal is JSON, or inf, -inf."""
    kinds = get_type_hints(definition)
    known = {item.name for item in fields(definition)}
    values: dict[str, Any] = {}
    rest = attributes or ""
    while rest:
        name = _ATTRIBUTE.match(rest)
        if name is None or name[1] not in known:
            raise ValueError(f"attributes {rest!r}")
        value, rest = _literal(rest[name.end() :])
        values[name[1]] = _as_kind(value, kinds[name[1]])
    return definition(**values)


def _literal(text: str) -> tuple[Any, str]:
    for word, number in (("-inf", -math.inf), ("inf", math.inf)):
        if text.startswith(word):
            return number, text[len(word) :].removeprefix(", ")
    value, end = json.JSONDecoder().raw_decode(text)
    return value, text[end:].removeprefix(", ")


def _as_kind(value: Any, kind: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    return _as_tuple(value)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value
