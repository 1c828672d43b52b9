"""The kernels of the indexer side that look at one page at a time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.attention.codegen.expression.inner import product_elements
from tilewright.attention.codegen.expression.memory import (
    array_place,
    computed,
    load_entry,
    load_input,
    load_kept,
    load_saved,
    load_stored,
    need_state,
    pool_entry,
    saved_stop,
    scratch_holds,
    store,
    token_condition,
)
from tilewright.attention.codegen.expression.narrow_dot import (
    dot_source,
    exact_widths,
    is_dot,
    narrow_type,
)
from tilewright.attention.codegen.expression.side import INDEXER_POSITIONS, SideEmitter
from tilewright.attention.codegen.plan.fusion import is_repeated
from tilewright.attention.codegen.plan.slice_loads import Window, window_of
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.plan.traffic import Traffic, page_traffic
from tilewright.attention.codegen.source.builder import (
    Body,
    Names,
    Operand,
    load_source,
    name_values,
    store_source,
)
from tilewright.attention.codegen.source.file import Emitted, Grid
from tilewright.attention.codegen.source.row import RowForm, row_start
from tilewright.attention.codegen.source.tree import (
    Statement,
    assigned,
    code,
    split_loop,
    without_unused,
)
from tilewright.attention.graph import FORMAT, DType, Graph, Leading, Node, Side, StateWrite
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
    scratch: Names


@dataclass(frozen=True, slots=True)
class PageWork:
    """What a round does for each tile of pages: ahead of the loop, and in each turn of it."""

    body: Body
    ahead: Sequence[Statement]
    inside: Sequence[Statement]
    tile: int
    traffic: Traffic
    names: Names = field(default_factory=dict)


def page_kernel(name: str, what_for: str, form: RowForm, work: PageWork) -> Emitted:
    """Emit a kernel whose programs look at tiles of pages, or at all pages of a member in turn."""
    body, tile = work.body, work.tile
    start = code(f"{form.preamble(body)}\nnum_full = num_tokens // {form.sizes.page_size}")
    if form.target is None:
        grid, what = Grid.ROW_TILES, f"row and tile of {tile} pages"
        block = ""
        if "block_table" in body.arguments:
            block = f"block = tl.load({form.table(body)} + page, mask=there, other=0).to(tl.int64)"
        start += code(f"""
            page = tl.program_id(1) * {tile} + tl.arange(0, {tile})[:, None, None]
            there = page < num_pages
            {_page_tokens(form.sizes.page_size)}
            {block}
        """)
        statements = [*work.ahead, *work.inside]
    else:
        grid, what = Grid.ROW_MEMBERS, form.program
        statements = [*work.ahead, *loop_code(form, work)]
    body.statements = without_unused([*start, *statements])
    purpose = f"{what_for}: a program for each {what}."
    return Emitted.of(name, purpose, body, grid, work.traffic, tile=tile)


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

    def emit(tile: int) -> _PageEmitter:
        body = Body("page_tokens", form.sizes.page_size, graph.geometry.query_heads, exact)
        form.preamble(body)  # arguments in the order in which they are used
        names = name_values(rounds, body)
        emitter = _PageEmitter(body=body, names=names, of=page_round, tile=tile)
        for node in stored:
            emitter.store_scratch(node)
        for write in writes:
            emitter.store_state(write)
        for node in kept:
            emitter.value(node)
        return emitter

    tile = form.tiling.pages_for(_largest_block(emit(1), form))
    emitter = emit(tile)
    body, names = emitter.body, emitter.names
    has_table = "block_table" in body.arguments
    traffic = page_traffic(emitter.done, stored, rounds, page_round.index, has_table=has_table)
    inside = without_unused(body.statements, [names[node] for node in kept])
    ahead: list[Statement] = []
    if form.target is not None and form.cut.hoists:
        ahead, inside = split_loop(inside, VARYING)
    return PageWork(body, ahead, inside, tile, traffic, names)


def _largest_block(emitter: SideEmitter, form: RowForm) -> int:
    """Count the elements a page of the widest block."""
    largest = 1
    for node in (node for node in emitter.done if node.type.leading is Leading.PAGES):
        rows, columns = map(emitter.body.extent, node.type.shape)
        largest = max(largest, rows * columns)
        is_small = node in emitter.loaded if form.target is None else form.has_dots and is_dot(node)
        if not is_small:
            largest = max(largest, padded(max(product_elements(node), 1)))
    return largest


def _page_tokens(page_size: int) -> str:
    left = f"tl.minimum(num_tokens - page * {page_size}, {page_size})"
    return f"page_tokens = tl.maximum({left}, 0)"


def loop_code(form: RowForm, work: PageWork, after: str = "") -> list[Statement]:
    """Loop over the tiles of a member's pages. Block numbers are loaded one tile ahead.

    ``after`` is the end of each turn. Work that looks at no page has no loop.
    """
    if not work.inside and not after:
        return []
    tile, own = work.tile, "page" if form.part is None else "own"
    block, blocks = "", f"tl.load(table + {{0}}, mask={{0}} < {form.num_own}, other=0)".format
    ahead = [f"offset = tl.arange(0, {tile})[:, None, None]"]
    if "block_table" in work.body.arguments:
        ahead.append(f"table = {form.table(work.body)}")
        block = f"block = {blocks(own)}.to(tl.int64)"
        if form.cut.reads_ahead:
            ahead.append(f"next_block = {blocks('offset')}")
            following = blocks(f"start + {tile} + offset")
            block = f"block = next_block.to(tl.int64); next_block = {following}"
    inside = code(
        f"""
        {own} = start + offset
        {f"page = {form.page_of('own')}" if form.part is not None else ""}
        there = {own} < {form.num_own}
        {_page_tokens(form.sizes.page_size)}
        {block}
        ...
        {after}
        """,
        work.inside,
    )
    left = {"next_block"} | assigned(code(after))  # by a turn for the next one
    loop = f"for start in range(0, {form.num_own}, {tile}):\n    ..."
    return code("\n".join([*ahead, loop]), without_unused(inside, left))


@dataclass(slots=True, kw_only=True)
class _PageEmitter(SideEmitter):
    """Has text of its own for values from memory, and for products with queries."""

    positions = INDEXER_POSITIONS
    of: PageRound
    tile: int
    stored: dict[Node, str] = field(default_factory=dict)  # fields as memory has them

    def load(self, node: Node) -> str | None:
        of, body = self.of, self.body
        kept = load_kept(of.graph, node, body)
        if kept is not None:
            return kept
        window = window_of(node)
        if window is not None:
            is_input = isinstance(window.source.op, leaf.Input)
            return load_input(window, body) if is_input else self._load_field(node, window)
        if node.op.is_row_op or (of.rounds[node] < of.index and not is_repeated(node)):
            return computed(load_source(*self._scratch(node)), node.type.dtype)
        return dot_source(node, self, self.stored, self.tile) if of.form.has_dots else None

    def _load_field(self, node: Node, window: Window) -> str:
        """Load a field: missing tokens are 0, a summary of an unfinished page its initial value."""
        graph, form, body = self.of.graph, self.of.form, self.body
        name = str(getattr(window.source.op, "variable", ""))
        (found,) = (item for item in graph.fields if item.name == name)
        condition = "(page < num_full)"
        if name in graph.geometry.reserved_fields:
            condition = token_condition(window, body)
        elif graph.partial_pages and name in {write.target for write in graph.field_writes}:
            condition = "there"
        is_stored = form.has_dots and narrow_type(node) and math.isfinite(found.initial)
        load = load_stored if is_stored else load_entry
        loaded = load(*pool_entry(window, body), window, [condition], body, found.initial)
        form.table(body)
        if not is_stored:
            return loaded
        self.stored[node] = body.set_new(f"{name}_stored", loaded)
        return computed(self.stored[node], window.source.type.dtype)

    def _scratch(self, node: Node) -> tuple[str, list[str]]:
        """Return pointers to the value of a row, or of a page of it, and which are there."""
        per_page = node.type.format is not FORMAT.BATCHED  # else every tile stores the same value
        name, shape = self.of.scratch[node], node.type.shape
        return array_place(name, scratch_holds(node), shape, self.body, per_page=per_page)

    def store_scratch(self, node: Node) -> None:
        """Emit the store of a value to scratch memory."""
        value = self.value(node)
        place, conditions = self._scratch(node)
        text = f"{value.name}.to(tl.int8)" if node.type.dtype is DType.BOOL else value.name
        self.body.add(store_source(place, text, conditions))

    def store_state(self, write: StateWrite) -> None:
        """Emit the store of a state variable for the next step.

        The next step's state is other memory than the last one's, since a later kernel may read
        that. So a page that this step does not advance is copied, if an earlier step has saved it.
        What an op remembers advances in every complete page, and in the unfinished one if the flow
        summarizes it.
        """
        graph, body, value = self.of.graph, self.body, self.value(write.value)
        (state,) = (item for item in graph.states if item.name == write.target)
        memory = need_state(state.name, "next", state.type, body)
        has_state = "there" if graph.partial_pages else "there & (page < num_full)"
        if state.is_saved:
            body.need("state_pages")
            stop = body.once("state_stop", "tl.load(state_pages + row)")
            for node in graph.nodes(Side.INDEXER):
                if isinstance(node.op, leaf.StateRead) and node.op.variable == state.name:
                    before = self.value(node).name
                    break
            else:
                before = body.new_name(f"{state.name}_before")
                body.add(f"{before} = {load_saved(state, body)}")
            chosen = f"tl.where(page < state_stop, {value.name}, {before})"
            value = Operand(body.set_new(f"{state.name}_after", chosen), state.type)
            has_state = f"there & (page < tl.maximum({stop}, {saved_stop(body)}))"
        store(body, value, state.type, row_start(body, memory), "page", has_state)
