"""What a step leaves behind: summaries of complete pages, and states of requests."""

from collections.abc import Mapping, Sequence

from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.op.frame import TokenView
from tilewright.attention.backends.reference.shared import Shared
from tilewright.attention.backends.reference.view import CacheSources, RowView
from tilewright.attention.graph import FORMAT, Graph, Inherit, Node, StateWrite
from tilewright.attention.paging import ExtendPlan

PAGES_AT_ONCE = 256  # bounds the memory of a long prefill


def complete_pages(shared: Shared, layer: int, plan: ExtendPlan, blocks: Array) -> None:
    """Run the cache side for every page that a step completes; ``blocks`` are the request's."""
    size, store, counts = shared.graph.geometry.page_size, shared.store, shared.counters.num_bytes
    coded = [name for name in shared.graph.geometry.reserved_fields if name in store.codes]
    for start in range(plan.first_full, plan.stop_full, PAGES_AT_ONCE):
        stop = min(start + PAGES_AT_ONCE, plan.stop_full)
        part = blocks[start:stop]
        num_pages = (stop - start) * shared.num_kv_heads
        counts.kv_written += store.block_bytes(coded) * num_pages  # codes and scales
        sources = CacheSources(shared, layer, part, TokenView(start, stop - start, size, size))
        for write in shared.graph.field_writes:
            store.write_blocks(layer, write.target, part, sources.written(write.target))
            counts.summary_written += store.block_bytes((write.target,)) * num_pages


def store_states(shared: Shared, plan: ExtendPlan, blocks: Array) -> None:
    """Store the state of newly complete pages with them, for flows that declare it."""
    names = [state.name for state in shared.graph.states if state.inherit == Inherit.SNAPSHOT]
    complete = blocks[plan.first_full : plan.stop_full]
    if not names or not complete.shape[0]:
        return
    num_tokens = plan.first_token + plan.num_tokens
    for layer in range(shared.spec.num_layers):
        view = RowView(shared, plan.request, layer, blocks, num_tokens)
        for name in names:
            values = view.state(name)[:, plan.first_full : plan.stop_full]
            shared.store.write_blocks(layer, name, complete, values)


def state_written(
    view: RowView, values: Mapping[Node, Array], state_pages: Sequence[int]
) -> dict[str, Array]:
    """Return the new state of a request by name, stored; what does not advance is left out.

    ``state_pages`` are the pages of each KV head that Saves write; a request cache has one entry,
    which is written with them. What an op remembers is written for every complete page of every
    head, and for the unfinished one if the flow summarizes it.
    """
    shared, found = view.shared, {}
    types = {state.name: state for state in shared.graph.states}
    complete = view.num_pages if shared.graph.partial_pages else view.num_full
    for write in advancing_writes(shared.graph, state_pages):
        variable = types[write.target]
        pages = state_pages if variable.is_saved else (complete,) * shared.num_kv_heads
        entries = view.num_pages
        if variable.type.format is FORMAT.SLOTTED:
            entries, pages = 1, [min(1, count) for count in pages]
        shape = (shared.num_kv_heads, entries, *variable.type.shape)
        value = shared.namespace.xp.broadcast_to(values[write.value], shape)
        stored = shared.namespace.stored(value, variable.type.dtype)
        found[write.target] = _covered(view, write.target, stored, pages)
        shared.counters.num_bytes.state_written += sum(pages) * variable.type.num_bytes
    return found


def advancing_writes(graph: Graph, state_pages: Sequence[int]) -> tuple[StateWrite, ...]:
    """Return what writes the state of a request in a step; no Save does if it covers no page."""
    saved = {state.name for state in graph.states if state.is_saved}
    advances = any(state_pages)
    return tuple(write for write in graph.state_writes if advances or write.target not in saved)


def _covered(view: RowView, name: str, stored: Array, pages: Sequence[int]) -> Array:
    """Return the new values of covered pages; further pages and other heads keep theirs."""
    shared, stop = view.shared, max(pages)
    held = shared.kept.layer(view.request, view.layer).get(name)
    most = stop if held is None else max(stop, min(int(held.shape[1]), view.num_pages))
    if min(pages) == most:
        return stored[:, :most]
    xp = shared.namespace.xp
    page = xp.reshape(xp.arange(most), (1, -1, 1, 1))
    covers = page < xp.reshape(xp.asarray(pages), (-1, 1, 1, 1))
    return xp.where(covers, stored[:, :most], view.stored_state(name)[:, :most])
