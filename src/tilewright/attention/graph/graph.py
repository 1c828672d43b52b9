"""A traced flow: its variables, the roots of its two programs, and how it is changed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from tilewright.attention.graph.geometry import Geometry
from tilewright.attention.graph.op import Op, Scope
from tilewright.attention.graph.type import DType, Side, ValueType


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One value. Two nodes are equal only if they are the same object."""

    op: Op
    inputs: tuple["Node", ...]
    type: ValueType  # what op.infer said
    source: str = ""  # the author's file and line, "quest.py:31"

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.type} {self.source}>"


def walk(roots: Iterable[Node]) -> Iterator[Node]:
    """Every node that the roots need, inputs before users, each once, in a fixed order."""
    done: set[Node] = set()
    for root in roots:
        stack: list[tuple[Node, bool]] = [(root, False)]
        while stack:
            node, inputs_are_done = stack.pop()
            if node in done:
                continue
            if inputs_are_done:
                done.add(node)
                yield node
            else:
                stack.append((node, True))
                stack.extend((item, False) for item in reversed(node.inputs))


class EstimateOver(StrEnum):
    """Which pages enter attention by their estimate."""

    UNSELECTED = "unselected"
    ALL = "all"


@dataclass(frozen=True, eq=False, slots=True)
class Estimate:
    """Pages that enter by a summary of ``r`` entries instead of by their tokens.

    Entry i of page s adds ``exp(logits[s, i, h])`` to the softmax denominator of query head h and
    ``exp(logits[s, i, h]) * values[s, i, :]`` to its numerator. Logits are complete: scaled, with
    the logarithm of the number of tokens that the entry stands for.
    """

    logits: Node  # [S, r, H]
    values: Node  # [S, r, value_dim]
    over: EstimateOver = EstimateOver.UNSELECTED


@dataclass(frozen=True, eq=False, slots=True)
class Branch:
    """One softmax attention: exact over the selected pages, and an estimate of others.

    Without a selection only the estimate enters. ``gate`` is [1, H, 1], or [1, 1, 1] for all heads.
    """

    selection: Node | None  # bool [S, 1, 1], or [S, 1, H] for a selection per query head
    gate: Node | None = None
    estimate: Estimate | None = None

    def parts(self) -> dict[str, Node]:
        """Return the nodes that the branch has, by name."""
        estimate = self.estimate
        named = {
            "selection": self.selection,
            "gate": self.gate,
            "logits": estimate.logits if estimate else None,
            "values": estimate.values if estimate else None,
        }
        return {name: node for name, node in named.items() if node is not None}


def part_types(
    geometry: Geometry, entries: int
) -> dict[str, tuple[DType, tuple[tuple[int, ...], ...]]]:
    """Return the element type and the inner shapes that each part of a branch may have.

    ``entries`` is the number of entries by which a page is estimated.
    """
    heads = geometry.query_heads
    return {
        "selection": (DType.BOOL, ((1, 1), (1, heads))),
        "gate": (DType.FLOAT32, ((1, 1), (heads, 1))),
        "logits": (DType.FLOAT32, ((entries, heads),)),
        "values": (DType.FLOAT32, ((entries, geometry.value_dim),)),
    }


@dataclass(frozen=True, eq=False, slots=True)
class Output:
    """The result of a step is the sum of its branches, each times its gate.

    The reserved pages of the plan are part of every selection, whatever its value says there.
    """

    branches: tuple[Branch, ...]
    source: str = ""

    def nodes(self) -> Iterator[Node]:
        for branch in self.branches:
            yield from branch.parts().values()


class Inherit(StrEnum):
    """What a request finds in the state of pages that it shares with an earlier one."""

    INITIAL = "initial"  # the initial value, as after a cold start
    SNAPSHOT = "snapshot"  # a copy of what was stored with the prefix


@dataclass(frozen=True, slots=True)
class Field:
    """A summary per page: a pure function of the page, shared with it."""

    name: str
    type: ValueType  # PAGED, in the dtype it is stored in
    initial: float = 0.0  # until the page is complete


@dataclass(frozen=True, slots=True)
class StateVar:
    """Kept per request, layer, KV head and logical page between decode steps.

    A read sees what the last step wrote, a write sets what the next step reads. A `FieldWrite` to
    a state variable gives its value at the completion of the page, instead of ``initial``.
    """

    name: str
    type: ValueType  # PAGED
    initial: float = 0.0
    inherit: Inherit = Inherit.INITIAL

    @property
    def is_saved(self) -> bool:
        """Whether a Save of the flow writes the variable, and not an op for its own use.

        Names of flows are identifiers; an op that remembers (`every`) has a dot in the name.
        """
        return "." not in self.name


@dataclass(frozen=True, slots=True)
class Parameter:
    """A learned constant. ``num_layers`` 0: one table for all layers.

    ``values`` has the shape of ``type``, behind an axis of layers if there are layers. It may be
    any array that NumPy can read. ``layer_rows`` maps the global layer number to a row of the
    table; empty means that row l is layer l. A layer without a row is an error, never clamped.
    """

    name: str
    type: ValueType  # PARAMETER
    num_layers: int
    values: Any = field(repr=False, compare=False)
    digest: str  # SHA-256 of the values: what makes two parameters equal
    layer_rows: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, eq=False)
class Write:
    """A value for a variable, by name."""

    target: str
    value: Node
    source: str = ""


class FieldWrite(Write):
    """Cache side: at the completion of a page the field (or state) gets this value."""


class StateWrite(Write):
    """Indexer side: the next step reads this value. All writes of a step commit together."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True, repr=False)
class Graph:
    """Two programs that meet in the fields only.

    The cache side ends in ``field_writes`` and runs when a page is complete. The indexer side ends
    in ``output`` and ``state_writes`` and runs at every decode step. What these roots do not need
    is not part of the graph.
    """

    name: str
    geometry: Geometry
    fields: tuple[Field, ...]  # the reserved ones (k, v or latent) first
    states: tuple[StateVar, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    inputs: tuple[tuple[str, ValueType], ...] = ()  # per step and row; the first is ``q``
    field_writes: tuple[FieldWrite, ...] = ()
    state_writes: tuple[StateWrite, ...] = ()
    output: Output
    partial_pages: bool = False  # the cache side runs on the unfinished last page too

    def __repr__(self) -> str:
        return f"<graph {self.name!r}>"  # graph_text tells the rest

    def indexer_roots(self) -> tuple[Node, ...]:
        """Branches in order, then state writes in order."""
        return (*self.output.nodes(), *(write.value for write in self.state_writes))

    @property
    def has_saves(self) -> bool:
        """Whether the flow saves state from step to step."""
        return any(state.is_saved for state in self.states)

    def nodes(self, side: Side) -> Iterator[Node]:
        """Nodes of one side, inputs before users."""
        if side is Side.CACHE:
            return walk(write.value for write in self.field_writes)
        return walk(self.indexer_roots())

    def scope(self, side: Side) -> Scope:
        variables = dict(self.inputs)
        variables |= {item.name: item.type for item in self.fields}
        variables |= {item.name: item.type for item in self.states}
        variables |= {item.name: item.type for item in self.parameters}
        return Scope(side, self.geometry, variables)


Transform = Callable[[Node, tuple[Node, ...], Scope], Node]
"""Old node, its new inputs, the scope of its side -> new node."""


def make_node(op: Op, inputs: tuple[Node, ...], scope: Scope, source: str) -> Node:
    """A node whose type follows from its inputs."""
    return Node(op, inputs, op.result_type(tuple(node.type for node in inputs), scope), source)


def keep(node: Node, inputs: tuple[Node, ...], _scope: Scope) -> Node:
    """The same node, or a copy of it if its inputs have changed."""
    return node if inputs == node.inputs else replace(node, inputs=inputs)


def rebuild(graph: Graph, transform: Transform) -> Graph:
    """Apply ``transform`` to every node, inputs first; roots follow. Names and types stay."""
    cache = _transformed(graph, Side.CACHE, transform)
    indexer = _transformed(graph, Side.INDEXER, transform)
    return replace(
        graph,
        field_writes=tuple(
            replace(write, value=cache[write.value]) for write in graph.field_writes
        ),
        state_writes=tuple(
            replace(write, value=indexer[write.value]) for write in graph.state_writes
        ),
        output=rebuild_output(graph.output, indexer),
    )


def _transformed(graph: Graph, side: Side, transform: Transform) -> dict[Node, Node]:
    scope = graph.scope(side)
    done: dict[Node, Node] = {}
    for node in graph.nodes(side):
        done[node] = transform(node, tuple(done[item] for item in node.inputs), scope)
    return done


def rebuild_output(output: Output, new: dict[Node, Node]) -> Output:
    """Return the output with each node replaced by the one that ``new`` has for it."""
    return Output(tuple(_branch(branch, new) for branch in output.branches), output.source)


def _branch(branch: Branch, new: dict[Node, Node]) -> Branch:
    estimate = branch.estimate
    if estimate is not None:
        estimate = Estimate(new[estimate.logits], new[estimate.values], estimate.over)
    return Branch(
        None if branch.selection is None else new[branch.selection],
        None if branch.gate is None else new[branch.gate],
        estimate,
    )
