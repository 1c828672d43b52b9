"""Choosing the best pages of a row whose scores are one block on the chip."""

from tilewright.attention.codegen.expression.elementwise import number
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.row import RowForm, row_start, span_code
from tilewright.attention.codegen.source.tree import Statement, code
from tilewright.attention.graph import Node, Span
from tilewright.attention.ops import selection

LEAST_KEY = -(2**31)  # of a page that is no candidate: no score has it

KEY_HELPERS = '''\
@triton.jit
def signed_key(score):
    """An int32 that orders as the score does; NaN is minus infinity."""
    score = tl.where(score == score, score, float("-inf"))
    score = tl.where(score == 0.0, 0.0, score)  # -0.0 equals 0.0
    bits = score.to(tl.int32, bitcast=True)
    return tl.where(bits < 0, -2147483648 - bits, bits)
'''

BLOCK_HELPERS = '''\
@triton.jit
def last_key_of(keys, count, PAGES: tl.constexpr):
    """The largest key that ``count`` of the keys reach; above all of them if that is none."""
    ordered = tl.sort(keys, descending=True)
    is_in = tl.arange(0, PAGES) < tl.broadcast_to(count, (PAGES,))
    return tl.min(tl.where(is_in, ordered, 2147483647), 0)


@triton.jit
def best_of(keys, count, PAGES: tl.constexpr):
    """Which keys are the ``count`` largest: the first ones among equals."""
    limit = last_key_of(keys, count, PAGES)
    equal = keys == limit
    owed = count - tl.sum((keys > limit).to(tl.int32), 0)
    turn = tl.cumsum(equal.to(tl.int32), 0)
    return (keys > limit) | (equal & (turn <= owed))
'''


def select_block_code(
    node: Node, form: RowForm, body: Body, *, scores: str, pages: int, chosen: str
) -> list[Statement]:
    """Select from ``scores``, a block of so many of the member's pages: marks in memory."""
    span = span_code(Span.MIDDLE, body)
    body.need(chosen, "int8 [rows, members, pages, 1, 1]")
    marks = row_start(body, chosen, form.part)
    start = code(f"""
        own = tl.arange(0, {pages})
        page = {form.page_of("own")}
        candidate = (page >= first) & (page < stop)
        keys = tl.where(candidate, signed_key({scores}), {LEAST_KEY})
    """)
    ending = code(f"""
        best = best_of(keys, count, {pages})
        there = own < {form.num_own}
        mark = ((best & candidate) | (candidate == 0)).to(tl.int8)
        tl.store({marks} + own, mark, mask=there)
    """)
    return [*span, *start, *count_code(node, body), *ending]


def count_code(
    node: Node,
    body: Body,
    reached: str = "tl.sum((keys >= least).to(tl.int32), 0)",
    key: str = "signed_key",
) -> list[Statement]:
    """Set ``count``, the candidates that are taken; ``reached`` counts those at a threshold."""
    match node.op:
        case selection.TopK(k=int(k)):
            return code(f"count = tl.minimum({k}, stop - first)")
        case selection.Threshold(value=value):
            least = f"tl.full((), {number(value)}, tl.float32)"
        case _:
            need_bounds(body)
            body.need("threshold", "float32 [rows]: between, those that score as much")
            least = "tl.load(threshold + row)"
    found = code(f"""
        least = {key}({least})
        count = {reached}
    """)
    return found + bound_code(node)


def need_bounds(body: Body) -> None:
    """Take the bounds that a plan sets."""
    body.need("at_least", "int32 [rows]: candidates that the plan takes at least")
    body.need("at_most", "int32 [rows]: and at most")


def bound_code(node: Node) -> list[Statement]:
    """Hold ``count`` between its bounds: those of the op, or those of the plan."""
    low, high = "tl.load(at_least + row)", "tl.load(at_most + row)"
    if isinstance(node.op, selection.Threshold | selection.TopP):
        low = str(node.op.min_pages)
        high = "stop - first" if node.op.max_pages is None else str(node.op.max_pages)
    return code(f"""
        count = tl.minimum(tl.maximum(count, {low}), {high})
        count = tl.minimum(count, stop - first)
    """)
