"""A traced flow: its variables, and the roots of its two programs."""

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.attention.graph.format import Side
from tilewright.attention.graph.geometry import Geometry
from tilewright.attention.graph.node import Node, walk
from tilewright.attention.graph.op import Scope
from tilewright.attention.graph.output import Output
from tilewright.attention.graph.type import ValueType
from tilewright.attention.graph.variable import (
    Field,
    FieldWrite,
    Parameter,
    StateVar,
    StateWrite,
)


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

    def cache_roots(self) -> tuple[Node, ...]:
        return tuple(write.value for write in self.field_writes)

    def indexer_roots(self) -> tuple[Node, ...]:
        """Branches in order, then state writes in order."""
        return (*self.output.nodes(), *(write.value for write in self.state_writes))

    @property
    def has_saves(self) -> bool:
        """Whether the flow saves state from step to step."""
        return any(state.is_saved for state in self.states)

    def nodes(self, side: Side) -> Iterator[Node]:
        """Nodes of one side, inputs before users."""
        return walk(self.cache_roots() if side is Side.CACHE else self.indexer_roots())

    def scope(self, side: Side) -> Scope:
        variables = dict(self.inputs)
        variables |= {item.name: item.type for item in self.fields}
        variables |= {item.name: item.type for item in self.states}
        variables |= {item.name: item.type for item in self.parameters}
        return Scope(side, self.geometry, variables)

    @property
    def has_state(self) -> bool:
        """Whether anything is kept per request between steps."""
        return bool(self.states)
