"""One request and layer at one length: what its programs and its attention may read."""

from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.op import run_nodes
from tilewright.attention.backends.reference.op.frame import Frame, TokenView
from tilewright.attention.backends.reference.pages import KvReader, PagedField
from tilewright.attention.backends.reference.shared import Shared
from tilewright.attention.backends.reference.store import MASS, prompt_mass_name
from tilewright.attention.graph import FORMAT, DType, FlowKind, Side, StateVar
from tilewright.attention.ops import leaf
from tilewright.errors import AttentionError, InternalError


class RowView:
    """The first ``num_tokens`` tokens of a request, in one layer."""

    def __init__(
        self, shared: Shared, request: str, layer: int, blocks: Array, num_tokens: int
    ) -> None:
        self.shared = shared
        self.request = request
        self.layer = layer
        self.num_tokens = num_tokens
        size = shared.graph.geometry.page_size
        self.num_pages = -(-num_tokens // size)
        self.num_full = num_tokens // size
        self.blocks = blocks[: self.num_pages]

    @cached_property
    def pages(self) -> TokenView:
        size = self.shared.graph.geometry.page_size
        return TokenView(0, self.num_pages, size, (self.num_tokens - 1) % size + 1)

    @cached_property
    def reader(self) -> KvReader:
        """Keys and values as a decode step reads them."""
        geometry, store = self.shared.graph.geometry, self.shared.store
        fields = [store.field(self.layer, name, self.blocks) for name in geometry.reserved_fields]
        values = None if geometry.kind is FlowKind.MLA else fields[1]
        return KvReader(fields[0], values, geometry.value_dim, self.num_tokens)

    @cached_property
    def prompt_reader(self) -> KvReader:
        """Keys and values as tokens of a prompt read them: staged, however the prompt was cut."""
        values = self.reader.values
        return replace(
            self.reader,
            keys=replace(self.reader.keys, codes=None),
            values=None if values is None else replace(values, codes=None),
        )

    def field(self, name: str) -> PagedField:
        """A field of the row. The unfinished page has a running summary, or the initial value."""
        tail = None
        if self.num_full < self.num_pages:
            reserved = name in self.shared.graph.geometry.reserved_fields
            tail = self._partial_sources.field(name) if reserved else self._unfinished_summary(name)
        return self.shared.store.field(self.layer, name, self.blocks[: self.num_full], tail)

    def state(self, name: str) -> Array:
        """A state variable of every page, computed, as the last step left it."""
        dtype = self.variable(name).type.dtype
        return self.shared.namespace.computed(self.stored_state(name), dtype)

    def stored_state(self, name: str) -> Array:
        """Return a state variable of every page in its stored type, as the last step left it."""
        shared, variable = self.shared, self.variable(name)
        stored = shared.namespace.stored(self._state_start(name), variable.type.dtype)
        if variable.type.format is FORMAT.SLOTTED:
            return shared.kept.read(self.request, self.layer, name, stored[:, :1])
        is_written = any(write.target == name for write in shared.graph.field_writes)
        if is_written and self.num_full == self.num_pages:
            last = self.num_pages - 1  # complete with this very token, and its state starts anew
            kept = shared.kept.read(self.request, self.layer, name, stored[:, :last])
            return shared.namespace.xp.concat([kept, stored[:, last:]], axis=1)
        return shared.kept.read(self.request, self.layer, name, stored)

    def kept(self, name: str, width: int, dtype: DType) -> Array:
        """Masses by page, or the last selection; 0 for pages that came later."""
        shape = (self.shared.num_kv_heads, self.num_pages, 1, width)
        start = self.shared.namespace.full(shape, 0, dtype)
        return self.shared.kept.read(self.request, self.layer, name, start)

    @cached_property
    def _partial_sources(self) -> "CacheSources":
        """The cache side on the unfinished page alone."""
        size = self.shared.graph.geometry.page_size
        view = TokenView(self.num_full, 1, size, self.num_tokens - self.num_full * size)
        return CacheSources(self.shared, self.layer, self.blocks[self.num_full :], view)

    def _unfinished_summary(self, name: str) -> Array:
        shared = self.shared
        if shared.graph.partial_pages:
            found = self._partial_sources.written(name)
            if found is not None:
                return found
        (field,) = (item for item in shared.graph.fields if item.name == name)
        shape = (shared.num_kv_heads, 1, *field.type.shape)
        initial = shared.namespace.full(shape, field.initial, field.type.dtype)
        return shared.namespace.computed(initial, field.type.dtype)

    def _state_start(self, name: str) -> Array:
        shared, variable = self.shared, self.variable(name)
        shape = (shared.num_kv_heads, self.num_pages, *variable.type.shape)
        initial = shared.namespace.full(shape, variable.initial)
        if name not in shared.store.dtypes:
            return initial
        complete = shared.store.field(self.layer, name, self.blocks[: self.num_full]).whole()
        return shared.namespace.xp.concat([complete, initial[:, self.num_full :]], axis=1)

    def variable(self, name: str) -> StateVar:
        """Return the state variable of a name."""
        (found,) = (state for state in self.shared.graph.states if state.name == name)
        return found


@dataclass(eq=False)
class CacheSources:
    """Leaves of the cache side: some pages of one layer, each by itself."""

    shared: Shared
    layer: int
    blocks: Array
    view: TokenView
    _written: dict[str, Array] = dataclass_field(default_factory=dict)

    def __call__(self, op: Any) -> Array:
        """Return what an op reads."""
        match op:
            case leaf.FieldRead():
                return self.field(op.variable)
            case leaf.ParameterRead():
                return layer_table(self.shared, op.variable, self.layer)
        raise InternalError("cache side", f"{op}", "fields and parameters only", "report it")

    @cached_property
    def frame(self) -> Frame:
        return Frame(
            namespace=self.shared.namespace,
            side=Side.CACHE,
            geometry=self.shared.graph.geometry,
            num_heads=self.shared.num_kv_heads,
            pages=self.view,
            layer=self.layer,
            counters=self.shared.counters,
        )

    def written(self, name: str) -> Array | None:
        """What the cache side writes to a field (or state), as it will be read: rounded once."""
        if name not in self._written:
            values = [
                write.value for write in self.shared.graph.field_writes if write.target == name
            ]
            if not values:
                return None
            found = run_nodes(values, self.frame, self, self.shared.evaluators)[values[-1]]
            shape = (self.shared.num_kv_heads, self.view.num_pages, *found.shape[2:])
            found = self.shared.namespace.xp.broadcast_to(found, shape)
            self._written[name] = self.shared.namespace.rounded(
                found, self.shared.store.dtypes[name]
            )
        return self._written[name]

    def field(self, name: str) -> Array:
        """Tokens of the pages, 0 where there is none yet; or a field that was written before."""
        if name not in self.shared.graph.geometry.reserved_fields:
            found = self.written(name)
            if found is None:
                where, expected = f"field {name!r}", "one before the read"
                raise InternalError(where, "no write", expected, "report it")
            return found
        field = self.shared.store.field(self.layer, name, self.blocks)
        if self.view.is_full:
            return field.whole()
        xp, tokens = self.shared.namespace.xp, replace(field, codes=None).whole()
        return xp.where(self.frame.token_valid(), tokens, xp.zeros_like(tokens))


@dataclass(frozen=True, slots=True, eq=False)
class RowSources:
    """Leaves of the indexer side: one row view and the inputs of one token."""

    view: RowView
    inputs: dict[str, Array]

    def __call__(self, op: Any) -> Any:
        """Return what an op reads, and count its bytes."""
        view, shared = self.view, self.view.shared
        match op:
            case leaf.Input():
                return self.inputs[op.variable]
            case leaf.FieldRead():
                num_bytes = shared.store.row_bytes((op.variable,), view.num_tokens)
                num_bytes *= shared.num_kv_heads
                if op.variable in shared.graph.geometry.reserved_fields:
                    shared.counters.num_bytes.kv_read += num_bytes
                else:
                    shared.counters.num_bytes.summary_read += num_bytes
                return view.field(op.variable)
            case leaf.StateRead():
                found = view.state(op.variable)
                num_bytes = view.variable(op.variable).type.num_bytes
                shared.counters.num_bytes.state_read += prod(found.shape[:2]) * num_bytes
                return found
            case leaf.ParameterRead():
                return layer_table(shared, op.variable, view.layer)
            case leaf.AttentionMass():
                name = MASS
            case _:
                name = prompt_mass_name(op.window)
        return view.kept(name, shared.graph.geometry.query_heads, DType.FLOAT32)


def layer_table(shared: Shared, name: str, layer: int) -> Array:
    """Return the values of one layer, rounded to the parameter's type: [1, 1, (heads,) N, K]."""
    namespace = shared.namespace
    (parameter,) = (item for item in shared.graph.parameters if item.name == name)
    values = np.asarray(parameter.values)
    if parameter.num_layers:
        row = parameter.layer_rows.get(layer) if parameter.layer_rows else layer
        if row is None or not 0 <= row < parameter.num_layers:
            known = sorted(parameter.layer_rows) or f"0..{parameter.num_layers - 1}"
            where = f"parameter {parameter.name!r}"
            expected = f"a layer that it has a table for: {known}"
            fix = "give it a table for this layer, or keep the layer dense"
            raise AttentionError(where, f"layer {layer}", expected, fix)
        values = values[row]
    table = namespace.rounded(namespace.array(values), parameter.type.dtype)
    return namespace.xp.reshape(table, (1, 1, *parameter.type.shape))
