"""What outlives a step: cache fields, state variables, parameters, and the writes to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from tilewright.attention.graph.node import Node
from tilewright.attention.graph.type import ValueType


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


@dataclass(frozen=True, eq=False, slots=True)
class FieldWrite:
    """Cache side: at the completion of a page the field (or state) gets this value."""

    target: str
    value: Node
    source: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class StateWrite:
    """Indexer side: the next step reads this value. All writes of a step commit together."""

    target: str
    value: Node
    source: str = ""
