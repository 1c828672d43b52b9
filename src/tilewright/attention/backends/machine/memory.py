"""What a decode step finds in the memories of a machine: pools, page tables, queries, lengths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod

import numpy as np
import numpy.typing as npt

from tilewright.attention.backends.generated import pooled
from tilewright.attention.backends.machine.layout import (
    Array,
    Int64s,
    LayoutSpec,
    Pieces,
    RowLayout,
    RowPlacement,
    plan_layout,
    replicate,
    strides_of,
)
from tilewright.attention.codegen.expression.memory import mass_memory, state_memory, tl_name
from tilewright.attention.graph import DType, Graph
from tilewright.attention.ops.leaf import prompt_windows, wants_mass
from tilewright.errors import AttentionError
from tilewright.host import RuntimeContext, Tensor
from tilewright.host.worker import parse_device
from tilewright.machine.build import Machine

NEW = "new_{}"  # the new token's part of a field of keys or values


class PageOrder(StrEnum):
    """Where the pages of a piece lie in it."""

    WRITTEN = "written"  # in the order in which they were written: a piece is one row's alone
    SHUFFLED = "shuffled"  # anywhere, by a seeded permutation


@dataclass(frozen=True, slots=True, kw_only=True)
class StepValues:
    """The values of a step, in their stored types, as they are before the new token is written."""

    fields: Mapping[str, Sequence[Array]]  # by name, then request: [KV heads, pages, r, c]
    new_tokens: Mapping[str, Array]  # of keys and values: [requests, KV heads, width]
    inputs: Mapping[str, Array]  # [requests, KV heads, r, c]
    kept: Mapping[str, Sequence[Array]]  # as fields, of what requests keep between steps
    saved_pages: npt.NDArray[np.int32] | None = None
    """Of each row: pages from 0 on whose state earlier steps saved. None: as many as the step
    before saves under the same plan."""


@dataclass(frozen=True, slots=True)
class DecodeMemory:
    """``arguments`` are what kernels take by name: tensors and numbers."""

    layout: RowLayout
    graph: Graph
    num_tokens: tuple[int, ...]  # of each request, the new one included
    blocks: tuple[Int64s, ...]  # of each request's logical pages, for its first KV head
    arrays: Mapping[str, Pieces]
    arguments: Mapping[str, Tensor | int]


def _stored(dtype: DType, count: int, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Plan a piece of ``count`` values as they are stored; two elements of int4 share a byte."""
    if dtype.bits < 8:
        return "uint8", (count, -(-prod(shape) * dtype.bits // 8))
    return tl_name(DType.INT8 if dtype is DType.BOOL else dtype), (count, *shape)


def block_bytes(graph: Graph) -> dict[str, int]:
    """Bytes of one page of one KV head, by field."""
    return {name: item.type.num_bytes for name, item in pooled(graph).items()}


def layout_of(
    machine: Machine,
    graph: Graph,
    *,
    placement: RowPlacement,
    num_tokens: tuple[int, ...],
    num_kv_heads: int,
    device: str = "all",
) -> RowLayout:
    """How the rows of a step lie on some SIPs of a machine."""
    size, dtype = graph.geometry.page_size, graph.geometry.kv_dtype
    if not dtype.is_float:
        expected = "a float type: kernels have no scales of pages"
        fix = "choose float8_e4m3 or a wider float, or the reference backend, which has scales"
        raise AttentionError("keys and values on a machine", str(dtype), expected, fix)
    spec = LayoutSpec(
        placement=placement,
        num_kv_heads=num_kv_heads,
        row_pages=tuple(-(-count // size) for count in num_tokens),
        block_bytes=block_bytes(graph),
        page_bytes=machine.spec.pe.mmu.page_bytes,
    )
    return plan_layout(spec, machine.grid, parse_device(device, machine.grid.num_sips).sips)


def deploy_rows(
    torch: RuntimeContext,
    graph: Graph,
    layout: RowLayout,
    *,
    num_tokens: tuple[int, ...],
    values: StepValues | None,
    order: PageOrder = PageOrder.WRITTEN,
    seed: int = 0,
) -> DecodeMemory:
    """Take the memory of a step's rows and write it, outside of simulated time."""
    size = graph.geometry.page_size
    row_pages = [-(-count // size) for count in num_tokens]
    places = np.arange(layout.span_blocks, dtype=np.int64)
    if order is PageOrder.SHUFFLED:
        places = np.random.default_rng(seed).permutation(places)
    blocks = tuple(layout.blocks_of(index, pages, places) for index, pages in enumerate(row_pages))
    arrays = {
        name: Pieces.empty(torch, layout, name, dtype, shape)
        for name, (dtype, shape) in _planned_arrays(graph, layout, max(row_pages)).items()
    }
    if values is not None:
        _fill(layout, blocks, arrays, values)
    arrays["block_table"].write(_table(layout, blocks))
    more = size - 1 if graph.partial_pages else 0  # pages that are not complete have state, too
    of_requests = {
        "num_tokens_ptr": np.array(num_tokens, dtype=np.int32),
        "step_ptr": np.zeros(len(num_tokens), dtype=np.int32),
        "kept_pages": np.array([(n - 1 + more) // size for n in num_tokens], dtype=np.int32),
    }
    table = arrays["block_table"].tensor.shape[1]
    arguments: dict[str, Tensor | int] = {
        **{name: pieces.tensor for name, pieces in arrays.items()},
        **replicate(torch, layout, of_requests),
        **strides_of(arrays),
        "num_kv_heads": layout.num_kv_heads,
        "num_blocks": layout.head_blocks,
        "member_pages": layout.member_pages,
        "table_request": table * layout.members * layout.num_kv_heads,
        "table_head": table * layout.members,
        "table_member": table,
        "layer": 0,
    }
    return DecodeMemory(layout, graph, num_tokens, blocks, arrays, arguments)


def _planned_arrays(
    graph: Graph, layout: RowLayout, longest: int
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Plan pools; at the home of a row inputs, the new token and what is kept; the page table.

    What a request keeps between steps has its pages in logical order.
    """
    kv_name, fields = tl_name(graph.geometry.kv_dtype), graph.geometry.reserved_fields
    masses = _stored(DType.FLOAT32, longest, (1, graph.geometry.query_heads))
    planned = {
        f"{name}_pool": _stored(item.type.dtype, layout.span_blocks, item.type.shape)
        for name, item in pooled(graph).items()
    }
    planned |= {f"{name}_in": (tl_name(kind.dtype), kind.shape) for name, kind in graph.inputs}
    planned |= {NEW.format(name): (kv_name, (width,)) for name, (_, width) in fields.items()}
    for state in graph.states:
        kept = _stored(state.type.dtype, longest, state.type.shape)
        planned |= {state_memory(state.name, when): kept for when in ("state", "next")}
    if wants_mass(graph):
        planned |= {mass_memory(when): masses for when in ("state", "next")}
    planned |= {f"prompt_mass_{window}_state": masses for window in prompt_windows(graph)}
    return planned | {"block_table": ("int64", (layout.member_pages,))}


def _table(layout: RowLayout, blocks: Sequence[Int64s]) -> Int64s:
    """[rows, members, pages of a member]: the block of each local page."""
    table = np.zeros((layout.num_requests, layout.members, layout.member_pages), dtype=np.int64)
    for request, of_request in enumerate(blocks):
        member, local = layout.places_of(np.arange(len(of_request)))
        table[request, member, local] = of_request
    return np.repeat(table, layout.num_kv_heads, axis=0)


def _fill(
    layout: RowLayout,
    blocks: Sequence[Int64s],
    arrays: Mapping[str, Pieces],
    values: StepValues,
) -> None:
    shape = (layout.num_rows * layout.head_blocks,)
    for name, given in values.fields.items():
        pieces = arrays[f"{name}_pool"]
        pool = np.zeros((*shape, *pieces.shape[1:]), given[0].dtype)
        for of_request, pages in zip(blocks, given, strict=True):
            for head, of_head in enumerate(pages):
                places = of_request + head * layout.head_blocks
                pool[places] = of_head.reshape(len(places), *pieces.shape[1:])
        pieces.write(pool.reshape(layout.num_rows, layout.members, *pieces.shape))
    for name, array in values.inputs.items():
        arrays[f"{name}_in"].write(array.reshape(layout.num_rows, *array.shape[2:]))
    for name, of_requests in values.kept.items():
        kept = np.zeros((layout.num_rows, *arrays[name].shape), of_requests[0].dtype)
        for request, given_pages in enumerate(of_requests):
            first = request * layout.num_kv_heads
            kept[first : first + layout.num_kv_heads, : given_pages.shape[1]] = given_pages
        arrays[name].write(kept)
    for name, array in values.new_tokens.items():
        arrays[NEW.format(name)].write(array.reshape(layout.num_rows, *array.shape[2:]))
