"""One request and layer at one length: what its programs and its attention may read."""

from dataclasses import replace
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
        store, names = self.shared.store, tuple(self.shared.graph.geometry.reserved_fields)
        return replace(
            self.prompt_reader,
            key_codes=store.codes.get(names[0]),
            value_codes=store.codes.get(names[-1]),
        )

    @cached_property
    def prompt_reader(self) -> KvReader:
        """Keys and values as tokens of a prompt read them: staged, however the prompt was cut."""
        geometry, store = self.shared.graph.geometry, self.shared.store
        names = tuple(geometry.reserved_fields)
        values = None if geometry.kind is FlowKind.MLA else store.pool(self.layer, "v")
        return KvReader(
            self.shared.namespace,
            store.pool(self.layer, names[0]),
            values,
            geometry.value_dim,
            store.dtypes[names[0]],
            self.blocks,
            self.num_tokens,
        )

    def field(self, name: str) -> PagedField:
        """A field of the row. The unfinished page has a running summary, or the initial value."""
        store = self.shared.store
        tail = None
        if self.num_full < self.num_pages:
            reserved = name in self.shared.graph.geometry.reserved_fields
            tail = self._partial_sources.field(name) if reserved else self._unfinished_summary(name)
        return PagedField(
            self.shared.namespace,
            store.pool(self.layer, name),
            store.dtypes[name],
            self.blocks[: self.num_full],
            tail,
            store.codes.get(name),
        )

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
        complete = PagedField(
            shared.namespace,
            shared.store.pool(self.layer, name),
            shared.store.dtypes[name],
            self.blocks[: self.num_full],
        ).whole()
        return shared.namespace.xp.concat([complete, initial[:, self.num_full :]], axis=1)

    def variable(self, name: str) -> StateVar:
        """Return the state variable of a name."""
        (found,) = (state for state in self.shared.graph.states if state.name == name)
        return found


class CacheSources:
    """Leaves of the cache side: some pages of one layer, each by itself."""

    def __init__(self, shared: Shared, layer: int, blocks: Array, view: TokenView) -> None:
        self._shared = shared
        self._layer = layer
        self._blocks = blocks
        self._view = view
        self._written: dict[str, Array] = {}

    def __call__(self, op: Any) -> Array:
        """Return what an op reads."""
        match op:
            case leaf.FieldRead():
                return self.field(op.variable)
            case leaf.ParameterRead():
                return layer_table(self._shared, op.variable, self._layer)
        raise InternalError("cache side", f"{op}", "fields and parameters only", "report it")

    @cached_property
    def frame(self) -> Frame:
        return Frame(
            namespace=self._shared.namespace,
            side=Side.CACHE,
            geometry=self._shared.graph.geometry,
            num_heads=self._shared.num_kv_heads,
            pages=self._view,
            layer=self._layer,
            counters=self._shared.counters,
        )

    def written(self, name: str) -> Array | None:
        """What the cache side writes to a field (or state), as it will be read: rounded once."""
        if name not in self._written:
            values = [
                write.value for write in self._shared.graph.field_writes if write.target == name
            ]
            if not values:
                return None
            found = run_nodes(values, self.frame, self, self._shared.evaluators)[values[-1]]
            shape = (self._shared.num_kv_heads, self._view.num_pages, *found.shape[2:])
            found = self._shared.namespace.xp.broadcast_to(found, shape)
            self._written[name] = self._shared.namespace.rounded(
                found, self._shared.store.dtypes[name]
            )
        return self._written[name]

    def field(self, name: str) -> Array:
        """Tokens of the pages, 0 where there is none yet; or a field that was written before."""
        if name not in self._shared.graph.geometry.reserved_fields:
            found = self.written(name)
            if found is None:
                where, expected = f"field {name!r}", "one before the read"
                raise InternalError(where, "no write", expected, "report it")
            return found
        store, is_full = self._shared.store, self._view.is_full
        pool, codes = store.pool(self._layer, name), store.codes.get(name) if is_full else None
        tokens = PagedField(
            self._shared.namespace, pool, store.dtypes[name], self._blocks, codes=codes
        ).whole()
        if is_full:
            return tokens
        xp = self._shared.namespace.xp
        return xp.where(self.frame.token_valid(), tokens, xp.zeros_like(tokens))


class RowSources:
    """Leaves of the indexer side: one row view and the inputs of one token."""

    def __init__(self, view: RowView, inputs: dict[str, Array]) -> None:
        self._view = view
        self._inputs = inputs

    def __call__(self, op: Any) -> Any:
        """Return what an op reads, and count its bytes."""
        view = self._view
        match op:
            case leaf.Input():
                return self._inputs[op.variable]
            case leaf.FieldRead():
                return self._field(op.variable)
            case leaf.StateRead():
                found = view.state(op.variable)
                num_bytes = view.variable(op.variable).type.num_bytes
                view.shared.counters.num_bytes.state_read += prod(found.shape[:2]) * num_bytes
                return found
            case leaf.ParameterRead():
                return layer_table(view.shared, op.variable, view.layer)
            case _:
                is_prompt = isinstance(op, leaf.PromptMass)
                name = prompt_mass_name(op.window) if is_prompt else MASS
                return view.kept(name, view.shared.graph.geometry.query_heads, DType.FLOAT32)

    def _field(self, name: str) -> PagedField:
        shared = self._view.shared
        num_bytes = shared.store.row_bytes((name,), self._view.num_tokens) * shared.num_kv_heads
        if name in shared.graph.geometry.reserved_fields:
            shared.counters.num_bytes.kv_read += num_bytes
        else:
            shared.counters.num_bytes.summary_read += num_bytes
        return self._view.field(name)


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
