"""What happens when pages are complete: the cache side runs, and states may be stored."""

from tilewright.attention.backends.reference.frame import TokenView
from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.shared import Shared
from tilewright.attention.backends.reference.view import CacheSources, RowView
from tilewright.attention.graph import Inherit
from tilewright.attention.paging import ExtendPlan

PAGES_AT_ONCE = 256  # bounds the memory of a long prefill


def complete_pages(shared: Shared, layer: int, plan: ExtendPlan, blocks: Array) -> None:
    """Run the cache side for every page that a step completes; ``blocks`` are the request's."""
    size = shared.graph.geometry.page_size
    for start in range(plan.first_full, plan.stop_full, PAGES_AT_ONCE):
        stop = min(start + PAGES_AT_ONCE, plan.stop_full)
        part = blocks[start:stop]
        _count_codes(shared, stop - start)
        sources = CacheSources(shared, layer, part, TokenView(start, stop - start, size, size))
        for write in shared.graph.field_writes:
            shared.store.write_blocks(layer, write.target, part, sources.written(write.target))
            num_bytes = shared.store.block_bytes((write.target,)) * (stop - start)
            shared.counters.num_bytes.summary_written += num_bytes * shared.num_kv_heads


def _count_codes(shared: Shared, num_pages: int) -> None:
    """Count the codes and scales that are written for complete pages."""
    store, names = shared.store, tuple(shared.graph.geometry.reserved_fields)
    coded = [name for name in names if store.codes(name) is not None]
    num_bytes = store.block_bytes(coded) * num_pages * shared.num_kv_heads
    shared.counters.num_bytes.kv_written += num_bytes


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
