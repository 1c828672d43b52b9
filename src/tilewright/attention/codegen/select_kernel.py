"""The kernels that choose the best pages of a row, and the helpers that they share."""

from tilewright.attention.codegen.body import Body
from tilewright.attention.codegen.elementwise import number
from tilewright.attention.codegen.kernel_file import Grid, Kernel
from tilewright.attention.codegen.naming import remark_of
from tilewright.attention.codegen.row_text import row_preamble, row_start
from tilewright.attention.codegen.side import refuse
from tilewright.attention.codegen.text import kernel_text
from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.graph import DType, Graph, Node
from tilewright.attention.ops import selection

__all__ = ("SELECT_HELPERS", "emit_select")

SELECT_HELPERS = '''\
@triton.jit
def ordered_key(score):
    """A whole number in 0 .. 2**32 - 1 that orders as the score does; NaN is minus infinity."""
    score = tl.where(score == score, score, float("-inf"))
    score = tl.where(score == 0.0, 0.0, score)  # -0.0 equals 0.0
    bits = score.to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, -2147483648 - bits, bits)
    return ordered.to(tl.int64) + 2147483648


@triton.jit
def load_keys(scores, stride, page, there):
    """Keys of pages; 0, which no score has, where a page does not count."""
    score = tl.load(scores + page * stride, mask=there, other=0).to(tl.float32)
    return tl.where(there, ordered_key(score), 0)


@triton.jit
def count_at_least(scores, stride, first, stop, key, TILE: tl.constexpr):
    """Pages in first .. stop whose key is at least ``key``, which is above 0."""
    count = tl.zeros((), tl.int32)
    for start in range(first, stop, TILE):
        page = start + tl.arange(0, TILE)
        count += tl.sum((load_keys(scores, stride, page, page < stop) >= key).to(tl.int32), 0)
    return count


@triton.jit
def last_key_in(scores, stride, first, stop, count, TILE: tl.constexpr):
    """The largest key that ``count`` pages reach, found from its first hexadecimal digit on."""
    limit = tl.zeros((), tl.int64)
    digit = tl.arange(0, 16).to(tl.int64)
    for place in range(8):
        trial = limit + (digit << (28 - 4 * place))
        reached = tl.zeros((16,), tl.int32)
        for start in range(first, stop, TILE):
            page = start + tl.arange(0, TILE)
            key = load_keys(scores, stride, page, page < stop)
            reached += tl.sum((key[None, :] >= trial[:, None]).to(tl.int32), 1)
        largest = tl.sum((reached >= count).to(tl.int64), 0) - 1  # fewer reach a larger digit
        limit += tl.maximum(largest, 0) << (28 - 4 * place)
    return limit


@triton.jit
def mark_best(scores, chosen, stride, first, stop, num_pages, count, TILE: tl.constexpr):
    """Mark the ``count`` best of first .. stop, the lower page among equals, and all outside."""
    limit = last_key_in(scores, stride, first, stop, count, TILE)
    owed = count - count_at_least(scores, stride, first, stop, limit + 1, TILE)
    for start in range(0, num_pages, TILE):
        page = start + tl.arange(0, TILE)
        candidate = (page >= first) & (page < stop)
        key = load_keys(scores, stride, page, candidate)
        equal = (candidate & (key == limit)).to(tl.int32)
        turn = tl.cumsum(equal, 0)
        best = candidate & ((key > limit) | ((equal != 0) & (turn <= owed)))
        owed -= tl.sum(equal, 0)
        mark = (best | ((page < num_pages) & (candidate == 0))).to(tl.int8)
        tl.store(chosen + page * stride, mark, mask=page < num_pages)
'''


def emit_select(
    graph: Graph, tiling: Tiling, node: Node, index: int, *, scores: str, chosen: str
) -> tuple[Kernel, str]:
    """Scores in scratch memory to marks in scratch memory."""
    body = Body(page_tokens=None)
    columns = node.type.shape[1]
    dtype = node.inputs[0].type.dtype.computed
    kept = DType.FLOAT32 if dtype.is_float else DType.INT32
    body.need(scores, f"{kept} [rows, max_pages, 1, {columns}]")
    body.need(chosen, f"int8 [rows, max_pages, 1, {columns}]")
    start = row_preamble(body, graph.geometry.page_size)
    body.need("first_reserved", "pages that every row reads at its beginning")
    body.need("last_reserved", "and at its end")
    body.lines += [
        f"# {remark_of(node)}",
        *start,
        "stop = tl.maximum(num_pages - last_reserved, 0)",
        "first = tl.minimum(first_reserved, stop)",
        f"scores = {row_start(body, scores)} + tl.program_id(1)",
        *_count_lines(node, columns, tiling.row_tile, body),
        f"chosen = {row_start(body, chosen)} + tl.program_id(1)",
        f"mark_best(scores, chosen, {columns}, first, stop, num_pages, count, {tiling.row_tile})",
    ]
    name = f"select_{index}"
    purpose = f"{node.op.name}: a program for each row and column of scores."
    kernel = Kernel(name, Grid.ROW_COLUMNS, tuple(body.arguments), columns)
    return kernel, kernel_text(name, purpose, body.arguments, body.lines)


def _count_lines(node: Node, columns: int, tile: int, body: Body) -> list[str]:
    """How many candidates are taken, as ``count``."""
    match node.op:
        case selection.TopK(k=int(k)):
            return [f"count = tl.minimum({k}, stop - first)"]
        case selection.TopK() | selection.ApproxTopK():
            body.need("at_least", "int32 [rows]: candidates that the plan takes at least")
            body.need("at_most", "int32 [rows]: and at most")
            body.need("threshold", "float32 [rows]: between, those that score as much")
            value = "tl.load(threshold + row)"
            low, high = "tl.load(at_least + row)", "tl.load(at_most + row)"
        case selection.Threshold():
            value = f"tl.full((), {number(node.op.value)}, tl.float32)"
            low = str(node.op.min_pages)
            high = "stop - first" if node.op.max_pages is None else str(node.op.max_pages)
        case _:
            raise refuse(node, f"an op over all pages: {node.op}", "TopK, ApproxTopK or Threshold")
    return [
        f"least = ordered_key({value})",
        f"count = count_at_least(scores, {columns}, first, stop, least, {tile})",
        f"count = tl.minimum(tl.maximum(count, {low}), {high})",
        "count = tl.minimum(count, stop - first)",
    ]
