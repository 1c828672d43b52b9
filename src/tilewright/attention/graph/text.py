"""The text form of a graph: readable, complete but for the values of parameters, and parseable."""

import hashlib
import json
from collections.abc import Iterator
from enum import Enum

from tilewright.attention.graph.graph import Graph, Node
from tilewright.attention.graph.op import Op
from tilewright.attention.graph.type import Side

VERSION = 1
"""Grows when the text or the meaning of a graph changes, and with it every hash."""


def graph_text(graph: Graph, *, sources: bool = True) -> str:
    """One line for each variable, node and root; equal graphs give equal text.

    Numbers of values count from 0 on each side, inputs before users. With ``sources`` each line
    ends in the author's line.
    """
    lines = [f"graph {json.dumps(graph.name)} version {VERSION}", *_variables(graph)]
    for side in Side:
        lines += ["", f"{side}:"]
        numbers: dict[Node, str] = {}
        for node in graph.nodes(side):
            numbers[node] = f"%{len(numbers)}"
            operands = ", ".join(numbers[item] for item in node.inputs)
            call = f"{node.op.name}{_attributes(node.op)}({operands})"
            line = f"  {numbers[node]} = {call} : {node.type}{_line(node.source, sources)}"
            lines.append(line)
        lines += _roots(graph, side, numbers, sources)
    return "\n".join(lines) + "\n"


def graph_hash(graph: Graph) -> str:
    """SHA-256 of the text without lines of the author: what a graph means, wherever it is written.

    The name of the flow does not count either.
    """
    text = graph_text(graph, sources=False)
    return hashlib.sha256(text.partition("\n")[2].encode()).hexdigest()


def _variables(graph: Graph) -> Iterator[str]:
    sizes = graph.geometry
    yield (
        f"geometry {sizes.kind} page_size={sizes.page_size} query_heads={sizes.query_heads}"
        f" key_dim={sizes.key_dim} value_dim={sizes.value_dim} kv={sizes.kv_dtype}"
        f" query={sizes.query_dtype} field={sizes.field_dtype}"
    )
    if graph.partial_pages:
        yield "partial pages"
    for name, kind in graph.inputs:
        yield f"input {name}: {kind}"
    for field in graph.fields:
        yield f"field {field.name}: {field.type} = {field.initial!r}"
    for state in graph.states:
        yield f"state {state.name}: {state.type} = {state.initial!r} inherit {state.inherit}"
    for item in graph.parameters:
        rows = json.dumps(sorted(item.layer_rows.items()))
        yield (
            f"parameter {item.name}: {item.type} layers={item.num_layers} rows={rows}"
            f" sha256={item.digest}"
        )


def _attributes(op: Op) -> str:
    """Only what differs from the defaults would be shorter, but would change with them."""
    pairs = [f"{name}={_literal(value)}" for name, value in op.attributes().items()]
    return f"<{', '.join(pairs)}>" if pairs else ""


def _literal(value: object) -> str:
    match value:
        case Enum():
            return json.dumps(value.value)
        case float():
            return repr(value)
        case tuple():
            return f"[{', '.join(map(_literal, value))}]"
        case _:
            return json.dumps(value)


def _roots(graph: Graph, side: Side, numbers: dict[Node, str], sources: bool) -> Iterator[str]:
    if side is Side.CACHE:
        for item in graph.field_writes:
            yield f"  write {item.target} <- {numbers[item.value]}{_line(item.source, sources)}"
        return
    for write in graph.state_writes:
        yield f"  save {write.target} <- {numbers[write.value]}{_line(write.source, sources)}"
    for branch in graph.output.branches:
        parts = [f"{name}={numbers[node]}" for name, node in branch.parts().items()]
        if branch.estimate is not None:
            parts.append(f"over={branch.estimate.over}")
        yield f"  attend {' '.join(parts)}{_line(graph.output.source, sources)}"


def _line(source: str, sources: bool) -> str:
    return f"  # {source}" if sources and source else ""
