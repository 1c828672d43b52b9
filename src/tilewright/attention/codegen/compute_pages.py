"""The kernels of the indexer side that look at one page at a time."""

from collections.abc import Mapping, Sequence

from tilewright.attention.codegen.body import Body
from tilewright.attention.codegen.kernel_file import Grid, Kernel
from tilewright.attention.codegen.naming import name_values
from tilewright.attention.codegen.position import INDEXER_POSITIONS
from tilewright.attention.codegen.rounds import is_repeated, is_row_op
from tilewright.attention.codegen.side import SideEmitter, check_stored
from tilewright.attention.codegen.slice_loads import Window, window_of
from tilewright.attention.codegen.text import kernel_text
from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.graph import FORMAT, DType, Graph, Node
from tilewright.attention.ops import leaf

__all__ = ("emit_compute_pages", "row_preamble", "scratch_holds")


def row_preamble(body: Body, page_size: int) -> list[str]:
    """What every kernel of a step begins with: the row and its length."""
    body.need("num_tokens_ptr", "int32 [requests]: tokens of each, the new one included")
    body.need("num_kv_heads", "rows are requests times KV heads")
    return [
        "row = tl.program_id(0).to(tl.int64)",
        "request = row // num_kv_heads",
        "head = row % num_kv_heads",
        "num_tokens = tl.load(num_tokens_ptr + request)",
        f"num_pages = (num_tokens + {page_size - 1}) // {page_size}",
    ]


def emit_compute_pages(
    graph: Graph,
    tiling: Tiling,
    index: int,
    roots: Sequence[Node],
    rounds: Mapping[Node, int],
    scratch: Mapping[Node, str],
) -> tuple[Kernel, str]:
    """The page kernel of one round; ``scratch`` names the memory of values between kernels."""
    size = graph.geometry.page_size
    body = Body("page_tokens", size, graph.geometry.query_heads)
    start = row_preamble(body, size)
    body.need("max_pages", "pages of the longest row")
    names = name_values(rounds, body)
    loads = _Loads(graph, index, rounds, scratch)
    emitter = SideEmitter(body, names, loads, INDEXER_POSITIONS)
    for node in roots:
        _store(node, emitter, scratch[node])
    tile = tiling.pages_for(emitter.largest_block)
    body.lines[:0] = [*start, *_page_lines(size, tile, body)]
    name = f"compute_pages_{index}"
    purpose = f"Values per page: a program for each row and tile of {tile} pages."
    kernel = Kernel(name, Grid.ROW_TILES, tuple(body.arguments), tile)
    return kernel, kernel_text(name, purpose, body.arguments, body.lines)


def _page_lines(page_size: int, tile: int, body: Body) -> list[str]:
    lines = [
        f"num_full = num_tokens // {page_size}",
        f"page = tl.program_id(1) * {tile} + tl.arange(0, {tile})[:, None, None]",
        "there = page < num_pages",
        f"page_tokens = tl.maximum(tl.minimum(num_tokens - page * {page_size}, {page_size}), 0)",
    ]
    if "block_table" in body.arguments:
        place = "block_table + request * max_pages + page"
        lines.append(f"block = tl.load({place}, mask=there, other=0)")
    return lines


class _Loads:
    """Expressions of what comes from memory in one round."""

    def __init__(
        self, graph: Graph, index: int, rounds: Mapping[Node, int], scratch: Mapping[Node, str]
    ) -> None:
        self._graph = graph
        self._index = index
        self._rounds = rounds
        self._scratch = scratch

    def __call__(self, node: Node, body: Body) -> str | None:
        window = window_of(node)
        if window is not None:
            is_input = isinstance(window.source.op, leaf.Input)
            return (_load_input if is_input else self._load_field)(node, window, body)
        earlier = self._rounds[node] < self._index and not is_repeated(node)
        if earlier or is_row_op(node):
            return _load_scratch(node, self._scratch[node], body)
        return None

    def _load_field(self, node: Node, window: Window, body: Body) -> str:
        """Missing tokens read as 0, and a summary of an unfinished page as its initial value."""
        name, whole = str(getattr(window.source.op, "variable", "")), window.source.type
        check_stored(name, whole.dtype)
        sizes = ", ".join(map(str, whole.shape))
        pool = body.need(f"{name}_pool", f"{whole.dtype} [KV heads, blocks, {sizes}]")
        body.need("num_blocks", "blocks of the pools")
        body.need("block_table", "int64 [requests, max_pages]: where logical pages lie")
        (field,) = (item for item in self._graph.fields if item.name == name)
        if name in self._graph.geometry.reserved_fields:
            token = body.index(1, node.type.shape[0])
            token = f"{token} + {window.row}" if window.row else token
            conditions = [f"({token} < page_tokens)"]
        else:
            conditions = ["(page < num_full)"]
        conditions += body.inside(node.type.shape)
        skip = window.row * window.row_length + window.column
        entry = "(head * num_blocks + block)"
        place = body.place(pool, entry, node.type.shape, whole.shape, skip)
        initial = repr(field.initial) if whole.dtype.is_float else str(int(field.initial))
        loaded = f"tl.load({place}, mask={' & '.join(conditions)}, other={initial})"
        return _computed(loaded, whole.dtype)


def _computed(loaded: str, dtype: DType) -> str:
    if dtype is DType.BOOL:
        return f"{loaded} != 0"
    return f"{loaded}.to(tl.{dtype.computed})"


def _load_input(node: Node, window: Window, body: Body) -> str:
    name, whole = str(getattr(window.source.op, "variable", "")), window.source.type
    sizes = ", ".join(map(str, whole.shape))
    given = body.need(f"{name}_in", f"{whole.dtype} [requests, KV heads, {sizes}]")
    skip = window.row * window.row_length + window.column
    place = body.place(given, "row", node.type.shape, whole.shape, skip)
    inside = body.inside(node.type.shape)
    mask = f", mask={' & '.join(inside)}, other=0" if inside else ""
    return _computed(f"tl.load({place}{mask})", whole.dtype)


def _entry(node: Node) -> str:
    """Where the entry of a row, or of a page of it, begins."""
    return "row" if node.type.format is FORMAT.BATCHED else "(row * max_pages + page)"


def scratch_holds(node: Node) -> str:
    """What scratch memory of a value holds, for the list of arguments."""
    sizes = ", ".join(map(str, node.type.shape))
    dtype = "int8" if node.type.dtype is DType.BOOL else node.type.dtype.computed
    axes = "rows" if node.type.format is FORMAT.BATCHED else "rows, max_pages"
    return f"{dtype} [{axes}, {sizes}]"


def _load_scratch(node: Node, name: str, body: Body) -> str:
    body.need(name, scratch_holds(node))
    place = body.place(name, _entry(node), node.type.shape, node.type.shape)
    conditions = body.inside(node.type.shape)
    if node.type.format is not FORMAT.BATCHED:
        conditions.insert(0, "there")
    mask = f", mask={' & '.join(conditions)}, other=0" if conditions else ""
    return _computed(f"tl.load({place}{mask})", node.type.dtype)


def _store(node: Node, emitter: SideEmitter, name: str) -> None:
    value, body = emitter.value(node), emitter.body
    body.need(name, scratch_holds(node))
    place = body.place(name, _entry(node), node.type.shape, node.type.shape)
    conditions = body.inside(node.type.shape)
    if node.type.format is not FORMAT.BATCHED:  # every tile stores the same value per row
        conditions.insert(0, "there")
    mask = f", mask={' & '.join(conditions)}" if conditions else ""
    text = f"{value.name}.to(tl.int8)" if node.type.dtype is DType.BOOL else value.name
    body.add(f"tl.store({place}, {text}{mask})")
