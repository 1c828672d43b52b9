"""The kernels that choose the best pages of a row from scores in memory, and their helpers."""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.attention.codegen.kernels.compute import scratch_holds
from tilewright.attention.codegen.kernels.select_block import bound_code, count_code, need_bounds
from tilewright.attention.codegen.kernels.select_segments import REACHED
from tilewright.attention.codegen.plan.cut import Selection
from tilewright.attention.codegen.plan.traffic import select_traffic
from tilewright.attention.codegen.source.builder import Body, remark_of
from tilewright.attention.codegen.source.file import Emitted, Grid, Scratch, ScratchAxis
from tilewright.attention.codegen.source.row import RowForm, row_preamble, row_start, span_code
from tilewright.attention.codegen.source.tree import If, Statement, code
from tilewright.attention.graph import DType, Node, Span
from tilewright.attention.ops import selection

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


@dataclass(frozen=True, slots=True)
class SelectBounds:
    """What is known of plans: whether they ask for a share of the softmax over scores, and how many
    candidates are enough (0: nobody knows, and digits are looked for).
    """

    by_mass: bool = False
    kept: int = 0


def emit_select(
    form: RowForm, node: Node, index: int, names: Mapping[Node, str], bounds: SelectBounds
) -> tuple[Emitted, tuple[Scratch, ...]]:
    """Emit a selection from scores to marks in memory; return what else is kept in between, too."""
    body = Body()
    scores, chosen = names[node.inputs[0]], names[node]
    body.need(scores, scratch_holds(node.inputs[0]))
    body.need(chosen, scratch_holds(node))
    work = _Selecting(node, form.tiling.row_tile, f"{scores}_weights", body, bounds.kept)
    body.statements += row_preamble(body, form.page_size, remark_of(node))
    body.statements += span_code(Span.MIDDLE, body)
    body.add(f"""
        scores = {row_start(body, scores)} + tl.program_id(1)
        chosen = {row_start(body, chosen)} + tl.program_id(1)
    """)
    body.statements += work.code(bounds.by_mass)
    purpose = f"{node.op.name}: a program for each row and column of scores."
    way = Selection.SEGMENTS if bounds.kept else Selection.DIGITS
    traffic = select_traffic(way, work.columns, is_fused=False)
    name, tile = f"select_{index}", work.columns
    return Emitted.of(name, purpose, body, Grid.ROW_COLUMNS, traffic, tile=tile), work.scratch()


@dataclass(frozen=True, slots=True)
class _Selecting:
    """The statements of one selection, from ``scores`` to ``chosen``."""

    node: Node
    tile: int
    weights: str
    body: Body
    kept: int  # candidates of a segment; 0: digits are looked for

    @property
    def columns(self) -> int:
        return self.node.type.shape[1]

    def scratch(self) -> tuple[Scratch, ...]:
        if self.weights not in self.body.arguments:
            return ()
        shape = self.node.type.shape
        return (Scratch(self.weights, ScratchAxis.PAGES, shape, DType.FLOAT32),)

    def code(self, by_mass: bool) -> list[Statement]:
        if isinstance(self.node.op, selection.TopP):
            return self._top_p(self.node.op)
        if self.kept:
            return self._in_two_levels()
        where = f"scores, {self.columns}, first, stop, least, {self.tile}"
        reached = f"count_at_least({where})"
        counted = count_code(self.node, self.body, reached, key="ordered_key")
        counted += self._mark("scores")
        planned = isinstance(self.node.op, selection.ApproxTopK) or self.node.op == selection.TopK(
            per_head=self.columns > 1
        )
        if not by_mass or not planned:
            return counted
        self.body.need("by_mass", "int8 [rows]: whether the plan asks for a share")
        self.body.need("mass", "float64 [rows]: that share of the softmax over scores")
        return [If.of("tl.load(by_mass + row) != 0", self._planned_mass(), counted)]

    def _in_two_levels(self) -> list[Statement]:
        where = f"{self.columns}, 1, 0, first, stop, num_pages"
        marked = f"scores, {self.columns}, chosen, {where}"
        best = code(f"best = best_in(scores, {where}, {self.kept}, {self.tile})")
        last = code(f"""
            last = last_rank_of(best, count, stop - first, {self.kept})
            mark_from({marked}, last, {self.tile})
        """)
        return [*best, *count_code(self.node, self.body, REACHED), *last]

    def _mark(self, ranked: str) -> list[Statement]:
        given = f"{ranked}, chosen, {self.columns}, first, stop, num_pages, count"
        return code(f"mark_best({given}, {self.tile})")

    def _weights(self) -> str:
        self.body.need(self.weights, f"float32 [rows, pages, 1, {self.columns}]")
        return f"weights = {row_start(self.body, self.weights)} + tl.program_id(1)"

    def _top_p(self, op: selection.TopP) -> list[Statement]:
        stride, tile = self.columns, self.tile
        ends = "tl.zeros((), tl.float64)"
        if op.span is Span.ALL:
            before = f"sum_weights(weights, {stride}, 0, first, {tile})"
            ends = f"{before} + sum_weights(weights, {stride}, stop, num_pages, {tile})"
        count = f"count_for_mass(weights, {stride}, first, stop, missing, {tile})"
        found = code(f"""
            {self._weights()}
            keep_weights(scores, weights, {stride}, num_pages, {tile})
            given = {ends}
            total = given + sum_weights(weights, {stride}, first, stop, {tile})
            missing = total * {op.p!r} - given
            count = {"stop - first" if op.p >= 1.0 else count}
        """)
        return [*found, *bound_code(self.node), *self._mark("weights")]

    def _planned_mass(self) -> list[Statement]:
        stride, tile = self.columns, self.tile
        need_bounds(self.body)
        found = code(f"""
            {self._weights()}
            keep_shares(scores, weights, {stride}, first, stop, {tile})
            total = sum_weights(weights, {stride}, first, stop, {tile})
            share = tl.load(mass + row)
            count = count_for_mass(weights, {stride}, first, stop, total * share, {tile})
            count = tl.where(share >= 1.0, stop - first, count)
        """)
        return [*found, *bound_code(self.node), *self._mark("weights")]


MASS_HELPERS = '''\
@triton.jit
def keep_weights(scores, weights, stride, num_pages, TILE: tl.constexpr):
    """Scores as weights: a negative one and NaN count as 0."""
    for start in range(0, num_pages, TILE):
        page = start + tl.arange(0, TILE)
        there = page < num_pages
        score = tl.load(scores + page * stride, mask=there, other=0).to(tl.float32)
        tl.store(weights + page * stride, tl.where(score > 0.0, score, 0.0), mask=there)
    tl.debug_barrier()  # other threads of the program read them


@triton.jit
def keep_shares(scores, weights, stride, first, stop, TILE: tl.constexpr):
    """Softmax over the candidates; NaN is minus infinity."""
    largest = tl.full((), float("-inf"), tl.float32)
    for start in range(first, stop, TILE):
        page = start + tl.arange(0, TILE)
        score = tl.load(scores + page * stride, mask=page < stop, other=0).to(tl.float32)
        counts = (page < stop) & (score == score)
        largest = tl.maximum(largest, tl.max(tl.where(counts, score, float("-inf")), 0))
    largest = tl.where(largest == float("-inf"), 0.0, largest)
    total = tl.zeros((), tl.float32)
    for start in range(first, stop, TILE):
        page = start + tl.arange(0, TILE)
        score = tl.load(scores + page * stride, mask=page < stop, other=0).to(tl.float32)
        counts = (page < stop) & (score == score)
        total += tl.sum(tl.where(counts, tl.exp(score - largest), 0.0), 0)
    total = tl.where(total == 0.0, 1.0, total)
    for start in range(first, stop, TILE):
        page = start + tl.arange(0, TILE)
        score = tl.load(scores + page * stride, mask=page < stop, other=0).to(tl.float32)
        share = tl.where(score == score, tl.div_rn(tl.exp(score - largest), total), 0.0)
        tl.store(weights + page * stride, share, mask=page < stop)
    tl.debug_barrier()  # other threads of the program read them


@triton.jit
def sum_weights(weights, stride, first, stop, TILE: tl.constexpr):
    """In float64: which page is the last one in must not hang on rounding of the sum."""
    total = tl.zeros((), tl.float64)
    for start in range(first, stop, TILE):
        page = start + tl.arange(0, TILE)
        weight = tl.load(weights + page * stride, mask=page < stop, other=0)
        total += tl.sum(weight.to(tl.float64), 0)
    return total


@triton.jit
def last_key_reached(weights, stride, first, stop, missing, TILE: tl.constexpr):
    """The largest key such that the weights from it on are ``missing`` at least."""
    limit = tl.zeros((), tl.int64)
    digit = tl.arange(0, 16).to(tl.int64)
    for place in range(8):
        trial = limit + (digit << (28 - 4 * place))
        reached = tl.zeros((16,), tl.float64)
        for start in range(first, stop, TILE):
            page = start + tl.arange(0, TILE)
            weight = tl.load(weights + page * stride, mask=page < stop, other=0)
            key = tl.where(page < stop, ordered_key(weight), 0)
            counted = key[None, :] >= trial[:, None]
            reached += tl.sum(tl.where(counted, weight.to(tl.float64)[None, :], 0.0), 1)
        largest = tl.sum((reached >= missing).to(tl.int64), 0) - 1  # a larger digit has less
        limit += tl.maximum(largest, 0) << (28 - 4 * place)
    return limit


@triton.jit
def count_for_mass(weights, stride, first, stop, missing, TILE: tl.constexpr):
    """The fewest pages, largest weight first, whose weights are ``missing`` at least."""
    limit = last_key_reached(weights, stride, first, stop, missing, TILE)
    count = tl.zeros((), tl.int32)
    above = tl.zeros((), tl.float64)
    each = tl.zeros((), tl.float64)
    for start in range(first, stop, TILE):
        page = start + tl.arange(0, TILE)
        weight = tl.load(weights + page * stride, mask=page < stop, other=0).to(tl.float64)
        key = load_keys(weights, stride, page, page < stop)
        count += tl.sum((key > limit).to(tl.int32), 0)
        above += tl.sum(tl.where(key > limit, weight, 0.0), 0)
        each = tl.maximum(each, tl.max(tl.where(key == limit, weight, 0.0), 0))
    equals = tl.ceil((missing - above) / tl.where(each == 0.0, 1.0, each))
    equals = tl.where(above + (equals - 1.0) * each >= missing, equals - 1.0, equals)
    equals = tl.where(above + equals * each < missing, equals + 1.0, equals)
    count += tl.where(each == 0.0, 0.0, equals).to(tl.int32)
    return tl.where(missing > 0.0, count, 0)
'''
