"""One request and layer at one length: what its programs and its attention may read."""

from dataclasses import replace
from functools import cached_property
from typing import Any

from tilewright.attention.backends.reference.frame import Frame, TokenView
from tilewright.attention.backends.reference.kept import MASS, prompt_mass_name
from tilewright.attention.backends.reference.kv import KvReader
from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.paged import PagedField
from tilewright.attention.backends.reference.parameter import layer_table
from tilewright.attention.backends.reference.program import run_nodes
from tilewright.attention.backends.reference.shared import Shared
from tilewright.attention.graph import FORMAT, DType, FlowKind, Side, StateVar
from tilewright.errors import InternalError


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
            key_codes=store.codes(names[0]),
            value_codes=store.codes(names[-1]),
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
            store.dtype(names[0]),
            self.blocks,
            self.num_tokens,
        )

    def field(self, name: str) -> PagedField:
        """A field of the row. The unfinished page has a running summary, or the initial value."""
        store = self.shared.store
        tail = None
        if self.num_full < self.num_pages:
            reserved = name in self.shared.graph.geometry.reserved_fields
            tail = self._unfinished_tokens(name) if reserved else self._unfinished_summary(name)
        return PagedField(
            self.shared.namespace,
            store.pool(self.layer, name),
            store.dtype(name),
            self.blocks[: self.num_full],
            tail,
            store.codes(name),
        )

    def state(self, name: str) -> Array:
        """A state variable of every page, computed, as the last step left it."""
        dtype = self._variable(name).type.dtype
        return self.shared.namespace.computed(self.stored_state(name), dtype)

    def stored_state(self, name: str) -> Array:
        """Return a state variable of every page in its stored type, as the last step left it."""
        shared, variable = self.shared, self._variable(name)
        stored = shared.namespace.stored(self._state_start(name), variable.type.dtype)
        if variable.type.format is FORMAT.SLOTTED:
            return shared.state.read(self.request, self.layer, name, stored[:, :1])
        if self._restarts(name):
            kept = shared.state.read(
                self.request, self.layer, name, stored[:, : self.num_pages - 1]
            )
            return shared.namespace.xp.concat([kept, stored[:, self.num_pages - 1 :]], axis=1)
        return shared.state.read(self.request, self.layer, name, stored)

    def mass(self, name: str) -> Array:
        """Masses by page; pages that came later have 0."""
        shape = (
            self.shared.num_kv_heads,
            self.num_pages,
            1,
            self.shared.graph.geometry.query_heads,
        )
        return self.shared.state.read(
            self.request, self.layer, name, self.shared.namespace.full(shape, 0.0)
        )

    def selection(self, name: str, width: int) -> Array:
        """The last selection; pages that came later are not in it."""
        shape = (self.shared.num_kv_heads, self.num_pages, 1, width)
        return self.shared.state.read(
            self.request, self.layer, name, self.shared.namespace.full(shape, 0, DType.BOOL)
        )

    @cached_property
    def _partial_sources(self) -> "CacheSources":
        """The cache side on the unfinished page alone."""
        size = self.shared.graph.geometry.page_size
        view = TokenView(self.num_full, 1, size, self.num_tokens - self.num_full * size)
        return CacheSources(self.shared, self.layer, self.blocks[self.num_full :], view)

    def _unfinished_tokens(self, name: str) -> Array:
        return self._partial_sources.field(name)

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
        shared, variable = self.shared, self._variable(name)
        shape = (shared.num_kv_heads, self.num_pages, *variable.type.shape)
        initial = shared.namespace.full(shape, variable.initial)
        if not shared.store.has(name):
            return initial
        complete = PagedField(
            shared.namespace,
            shared.store.pool(self.layer, name),
            shared.store.dtype(name),
            self.blocks[: self.num_full],
        ).whole()
        return shared.namespace.xp.concat([complete, initial[:, self.num_full :]], axis=1)

    def _variable(self, name: str) -> StateVar:
        (found,) = (state for state in self.shared.graph.states if state.name == name)
        return found

    def _restarts(self, name: str) -> bool:
        """Whether the last page is complete with this very token, and its state starts anew."""
        written = any(write.target == name for write in self.shared.graph.field_writes)
        return written and self.num_full == self.num_pages


class CacheSources:
    """Leaves of the cache side: some pages of one layer, each by itself."""

    def __init__(self, shared: Shared, layer: int, blocks: Array, view: TokenView) -> None:
        self._shared = shared
        self._layer = layer
        self._blocks = blocks
        self._view = view
        self._written: dict[str, Array] = {}

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
            self._written[name] = self._shared.namespace.rounded(found, self._dtype(name))
        return self._written[name]

    def field(self, name: str) -> Array:
        """Tokens of the pages, 0 where there is none yet; or a field that was written before."""
        if name not in self._shared.graph.geometry.reserved_fields:
            found = self.written(name)
            if found is None:
                raise InternalError(
                    f"field {name!r}", "no write", "one before the read", "report it"
                )
            return found
        pool = self._shared.store.pool(self._layer, name)
        dtype = self._shared.store.dtype(name)
        if self._view.is_full:
            codes = self._shared.store.codes(name)
            return PagedField(
                self._shared.namespace, pool, dtype, self._blocks, codes=codes
            ).whole()
        tokens = PagedField(self._shared.namespace, pool, dtype, self._blocks).whole()
        xp = self._shared.namespace.xp
        return xp.where(self.frame.token_valid(), tokens, xp.zeros_like(tokens))

    def parameter(self, name: str) -> Array:
        return layer_table(self._shared.graph, self._shared.namespace, name, self._layer)

    def input(self, name: str) -> Array:
        raise self._not_here(f"input {name!r}")

    def state(self, name: str) -> Array:
        raise self._not_here(f"state {name!r}")

    def mass(self) -> Array:
        raise self._not_here("attention mass")

    def prompt_mass(self, window: int) -> Array:
        raise self._not_here(f"prompt mass of {window}")

    def _dtype(self, name: str) -> DType:
        return self._shared.store.dtype(name)

    def _not_here(self, what: str) -> InternalError:
        return InternalError("cache side", what, "fields and parameters only", "report it")


class RowSources:
    """Leaves of the indexer side: one row view and the inputs of one token."""

    def __init__(self, view: RowView, inputs: dict[str, Array]) -> None:
        self._view = view
        self._inputs = inputs

    def input(self, name: str) -> Array:
        return self._inputs[name]

    def field(self, name: str) -> Any:
        view = self._view
        names = view.shared.graph.geometry.reserved_fields
        num_bytes = view.shared.store.row_bytes((name,), view.num_tokens)
        num_bytes *= view.shared.num_kv_heads
        counts = view.shared.counters.num_bytes
        if name in names:
            counts.kv_read += num_bytes
        else:
            counts.summary_read += num_bytes
        return view.field(name)

    def state(self, name: str) -> Array:
        found = self._view.state(name)
        self._view.shared.counters.num_bytes.state_read += _stored_bytes(self._view, name, found)
        return found

    def parameter(self, name: str) -> Array:
        shared = self._view.shared
        return layer_table(shared.graph, shared.namespace, name, self._view.layer)

    def mass(self) -> Array:
        return self._view.mass(MASS)

    def prompt_mass(self, window: int) -> Array:
        return self._view.mass(prompt_mass_name(window))


def _stored_bytes(view: RowView, name: str, values: Array) -> int:
    (variable,) = (state for state in view.shared.graph.states if state.name == name)
    heads, pages = values.shape[:2]
    return int(heads) * int(pages) * variable.type.num_bytes
