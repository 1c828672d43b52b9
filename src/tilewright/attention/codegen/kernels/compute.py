"""The kernels of the indexer side that look at one page at a time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.attention.codegen.expression.inner import product_elements
from tilewright.attention.codegen.expression.leaf_loads import KeptLoads, load_pool
from tilewright.attention.codegen.expression.narrow_dot import (
    dot_source,
    exact_widths,
    is_dot,
    narrow_type,
)
from tilewright.attention.codegen.expression.side import INDEXER_POSITIONS, SideEmitter
from tilewright.attention.codegen.expression.stored import computed
from tilewright.attention.codegen.kernels.state_writes import store_state
from tilewright.attention.codegen.plan.rounds import is_repeated, is_row_op
from tilewright.attention.codegen.plan.slice_loads import Window, window_of
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.plan.traffic import Stage, Traffic, page_traffic
from tilewright.attention.codegen.source.builder import Body, load_source, name_values, store_source
from tilewright.attention.codegen.source.file import Emitted, Grid
from tilewright.attention.codegen.source.liveness import assigned, split_loop, without_unused
from tilewright.attention.codegen.source.row import RowForm, row_start
from tilewright.attention.codegen.source.tree import Loop, Statement, code
from tilewright.attention.graph import FORMAT, DType, Graph, Leading, Node, StateWrite
from tilewright.attention.ops import leaf

VARYING = ("own", "page", "there", "page_tokens", "block")
"""Names whose values differ from tile to tile."""


@dataclass(frozen=True, slots=True)
class PageRound:
    """One round of a graph; ``scratch`` names the memory of values between kernels."""

    graph: Graph
    form: RowForm
    index: int
    rounds: Mapping[Node, int]
    scratch: Mapping[Node, str]


@dataclass(frozen=True, slots=True)
class PageWork:
    """What a round does for each tile of pages: ahead of the loop, and in each turn of it."""

    body: Body
    ahead: tuple[Statement, ...]
    inside: tuple[Statement, ...]
    tile: int
    names: Mapping[Node, str]
    traffic: Traffic = field(default_factory=lambda: Traffic(Stage.SCORING))


def emit_compute_pages(
    page_round: PageRound, roots: Sequence[Node], writes: Sequence[StateWrite] = ()
) -> Emitted:
    """Emit the page kernel of a round; ``writes`` are states whose next value is known in it."""
    work = page_work(page_round, stored=roots, writes=writes)
    name = f"compute_pages_{page_round.index}"
    return page_kernel(name, "Values per page", page_round.form, work, Stage.SCORING)


def page_kernel(name: str, what_for: str, form: RowForm, work: PageWork, stage: Stage) -> Emitted:
    """Emit a kernel whose programs look at tiles of pages, or at all pages of a member in turn."""
    body, tile = work.body, work.tile
    if form.target is None:
        grid, what = Grid.ROW_TILES, f"row and tile of {tile} pages"
        lines = [*_tile_code(form, work), *work.ahead, *work.inside]
    else:
        grid, what = Grid.ROW_MEMBERS, "row" if form.members == 1 else "row and member"
        loop = loop_code(form, work) if work.inside else ()  # a round may look at no page
        lines = [*work.ahead, *loop]
    start = form.preamble(body)
    full = code(f"num_full = num_tokens // {form.page_size}")
    body.statements = without_unused([*start, *full, *lines])
    purpose = f"{what_for}: a program for each {what}."
    return Emitted.of(name, purpose, body, grid, replace(work.traffic, stage=stage), tile=tile)


def page_work(
    page_round: PageRound,
    *,
    stored: Sequence[Node] = (),
    kept: Sequence[Node] = (),
    writes: Sequence[StateWrite] = (),
) -> PageWork:
    """Emit one round: ``stored`` values go to scratch memory, ``kept`` ones stay as they are."""
    graph, form, rounds = page_round.graph, page_round.form, page_round.rounds
    wanted = (*stored, *kept, *(write.value for write in writes))
    exact = exact_widths(wanted) if form.has_dots else frozenset[int]()

    def emit(tile: int) -> tuple[Body, _Loads, dict[Node, str]]:
        body = Body("page_tokens", form.page_size, graph.geometry.query_heads, exact)
        form.preamble(body)  # arguments in the order in which they are used
        names = name_values(rounds, body)
        loads = _Loads(page_round, tile)
        loads.emitter = SideEmitter(body, names, loads, INDEXER_POSITIONS)
        for node in stored:
            _store(node, loads.emitter, page_round.scratch[node])
        for write in writes:
            store_state(graph, write, loads.emitter)
        for node in kept:
            loads.emitter.value(node)
        return body, loads, names

    _, first, _ = emit(1)
    tile = form.tiling.pages_for(first.largest_block())
    body, loads, names = emit(tile)
    has_table = "block_table" in body.arguments
    traffic = page_traffic(loads.seen, stored, rounds, page_round.index, has_table=has_table)
    lines = without_unused(body.statements, [names[node] for node in kept])
    if form.target is None or not form.cut.hoists:
        return PageWork(body, (), tuple(lines), tile, names, traffic)
    ahead, inside = split_loop(lines, VARYING)
    return PageWork(body, tuple(ahead), tuple(inside), tile, names, traffic)


def _tile_code(form: RowForm, work: PageWork) -> list[Statement]:
    """Set where the pages of one tile lie."""
    block = ""
    if "block_table" in work.body.arguments:
        table = form.table(work.body)
        block = f"block = tl.load({table} + page, mask=there, other=0).to(tl.int64)"
    return code(f"""
        page = tl.program_id(1) * {work.tile} + tl.arange(0, {work.tile})[:, None, None]
        there = page < num_pages
        {_page_tokens(form.page_size)}
        {block}
    """)


def _page_tokens(page_size: int) -> str:
    left = f"tl.minimum(num_tokens - page * {page_size}, {page_size})"
    return f"page_tokens = tl.maximum({left}, 0)"


def loop_code(form: RowForm, work: PageWork, after: Sequence[Statement] = ()) -> list[Statement]:
    """Loop over the tiles of a member's pages. Block numbers are loaded one tile ahead.

    ``after`` is the end of each turn. Work that looks at no page has no loop.
    """
    if not work.inside and not after:
        return []
    tile = work.tile
    own = "page" if form.part is None else "own"
    ahead = code(f"offset = tl.arange(0, {tile})[:, None, None]")
    inside = code(f"""
        {own} = start + offset
        {f"page = {form.page_of('own')}" if form.part is not None else ""}
        there = {own} < {form.num_own}
        {_page_tokens(form.page_size)}
    """)
    if "block_table" in work.body.arguments:
        ahead += code(f"table = {form.table(work.body)}")
        if form.cut.reads_ahead:
            ahead += code(f"next_block = {_block_of('offset', form)}")
            inside += code(f"""
                block = next_block.to(tl.int64)
                next_block = {_block_of(f"start + {tile} + offset", form)}
            """)
        else:
            inside += code(f"block = {_block_of(own, form)}.to(tl.int64)")
    left = {"next_block"} | assigned(after)  # by a turn for the next one
    inside = without_unused([*inside, *work.inside, *after], left)
    return [*ahead, Loop.over("start", "0", form.num_own, tile, inside)]


def _block_of(own: str, form: RowForm) -> str:
    """Load block numbers of some of the member's pages."""
    return f"tl.load(table + {own}, mask={own} < {form.num_own}, other=0)"


@dataclass(slots=True)
class _Loads:
    """Values that a kernel of one round has text of its own for: memory, products with queries."""

    of: PageRound
    tile: int
    emitter: SideEmitter = field(init=False)
    _kept: KeptLoads = field(init=False)
    _stored: dict[Node, str] = field(default_factory=dict)  # as memory has them
    seen: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._kept = KeptLoads(self.of.graph)

    def __call__(self, node: Node, body: Body) -> str | None:
        self.seen.append(node)
        kept = self._kept(node, body)
        if kept is not None:
            return kept
        window = window_of(node)
        if window is not None:
            is_input = isinstance(window.source.op, leaf.Input)
            return (_load_input if is_input else self._load_field)(node, window, body)
        earlier = self.of.rounds[node] < self.of.index and not is_repeated(node)
        if earlier or is_row_op(node):
            return _load_scratch(node, self.of.scratch[node], body)
        if self.of.form.has_dots:
            return dot_source(node, self.emitter, self._stored, self.tile)
        return None

    def largest_block(self) -> int:
        """Count the elements a page of the widest block."""
        if self.of.form.target is None:
            return self.emitter.largest_block
        blocks = [1]
        for node in self.seen:
            if node.type.leading is Leading.PAGES:
                rows, columns = node.type.shape
                body = self.emitter.body
                blocks.append(body.extent(rows) * body.extent(columns))
                if not (self.of.form.has_dots and is_dot(node)):
                    blocks.append(padded(max(product_elements(node), 1)))
        return max(blocks)

    def _load_field(self, node: Node, window: Window, body: Body) -> str:
        """Load a field: missing tokens are 0, a summary of an unfinished page its initial value."""
        name, whole = str(getattr(window.source.op, "variable", "")), window.source.type
        (found,) = (item for item in self.of.graph.fields if item.name == name)
        written = {write.target for write in self.of.graph.field_writes}
        if name in self.of.graph.geometry.reserved_fields:
            token = body.index(1, node.type.shape[0])
            token = f"{token} + {window.row}" if window.row else token
            condition = f"({token} < page_tokens)"
        elif self.of.graph.partial_pages and name in written:
            condition = "there"
        else:
            condition = "(page < num_full)"
        narrow = self.of.form.has_dots and bool(narrow_type(node)) and math.isfinite(found.initial)
        loaded = load_pool(node, window, condition, found.initial, body, as_stored=narrow)
        self.of.form.table(body)
        if not narrow:
            return loaded
        kept = self._stored[node] = body.new_name(f"{name}_stored")
        body.add(f"{kept} = {loaded}")
        return computed(kept, whole.dtype)


def _load_input(node: Node, window: Window, body: Body) -> str:
    name, whole = str(getattr(window.source.op, "variable", "")), window.source.type
    sizes = ", ".join(map(str, whole.shape))
    given = body.need(f"{name}_in", f"{whole.dtype} [requests, KV heads, {sizes}]")
    skip = window.row * window.row_length + window.column
    place = body.place(row_start(body, given), "", node.type.shape, whole.shape, skip)
    return computed(load_source(place, body.inside(node.type.shape)), whole.dtype)


def scratch_holds(node: Node) -> str:
    """Say what scratch memory of a value holds."""
    sizes = ", ".join(map(str, node.type.shape))
    dtype = "int8" if node.type.dtype is DType.BOOL else node.type.dtype.computed
    axes = "rows" if node.type.format is FORMAT.BATCHED else "rows, pages"
    return f"{dtype} [{axes}, {sizes}]"


def _scratch_place(node: Node, name: str, body: Body) -> str:
    """Return pointers to the value of a row, or of a page of it."""
    body.need(name, scratch_holds(node))
    entry = "" if node.type.format is FORMAT.BATCHED else "page"
    return body.place(row_start(body, name), entry, node.type.shape, node.type.shape)


def _load_scratch(node: Node, name: str, body: Body) -> str:
    place = _scratch_place(node, name, body)
    conditions = body.inside(node.type.shape)
    if node.type.format is not FORMAT.BATCHED:
        conditions.insert(0, "there")
    return computed(load_source(place, conditions), node.type.dtype)


def _store(node: Node, emitter: SideEmitter, name: str) -> None:
    value, body = emitter.value(node), emitter.body
    place = _scratch_place(node, name, body)
    conditions = body.inside(node.type.shape)
    if node.type.format is not FORMAT.BATCHED:  # every tile stores the same value per row
        conditions.insert(0, "there")
    text = f"{value.name}.to(tl.int8)" if node.type.dtype is DType.BOOL else value.name
    body.add(store_source(place, text, conditions))
