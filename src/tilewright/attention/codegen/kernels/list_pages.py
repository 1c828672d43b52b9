"""The kernel that packs chosen pages into lists."""

from tilewright.attention.codegen.plan.target import Deal, padded
from tilewright.attention.codegen.plan.traffic import MARK_BYTES, NUMBER_BYTES, Stage, Traffic
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.file import Emitted, Grid, ScratchAxis, StageFunction
from tilewright.attention.codegen.source.row import RowForm, row_start
from tilewright.attention.codegen.source.tree import code, lines, without_unused


def emit_list_pages(form: RowForm, *, chosen: str, columns: int, axis: ScratchAxis) -> Emitted:
    """Emit the lists of pages that some query head chose, in order, their lengths and tokens."""
    stage = list_stage(form, chosen=chosen, columns=columns, axis=axis)
    body = stage.body
    body.statements = without_unused([*code(form.preamble(body)), *body.statements])
    grid = Grid.ROWS if form.target is None else Grid.ROW_MEMBERS
    purpose = f"Chosen pages in logical order: a program for each {form.program}."
    return Emitted.of(f"list_pages{form.suffix}", purpose, body, grid, stage.traffic)


def list_stage(form: RowForm, *, chosen: str, columns: int, axis: ScratchAxis) -> StageFunction:
    """List the numbers of a member's own pages; ``axis`` says how the marks lie."""
    body, tile, size = form.body(), form.tiling.row_tile, form.sizes.page_size
    pages = "rows, pages" if axis is ScratchAxis.PAGES else "rows, members, pages"
    body.need(chosen, f"int8 [{pages}, 1, {columns}]")
    body.need_all("first_reserved", "last_reserved", "reads_all")
    lists, lengths, totals = need_lists(form, body)
    marks = row_start(body, chosen, form.part if axis is ScratchAxis.MEMBER_PAGES else None)
    listed = row_start(body, lists, form.part)
    load, mark = _marks(form, columns, axis)
    body.add(f"""
        everything = tl.load(reads_all + row)
        marks = {marks}
        listed = {listed}
        length = tl.zeros((), tl.int32)
        tokens = tl.zeros((), tl.int32)
        for start in range(0, {form.num_own}, {tile}):
            own = start + tl.arange(0, {tile})
            page = {form.page_of("own")}
            there = own < {form.num_own}
            {load}
            read = (({mark} | everything) != 0) | (page < first_reserved)
            read = (read | (page >= num_pages - last_reserved)) & there
            place = length + tl.cumsum(read.to(tl.int32), 0) - 1
            tl.store(listed + place, own, mask=read)
            length += tl.sum(read.to(tl.int32), 0)
            tokens += tl.sum(tl.where(read, tl.minimum(num_tokens - page * {size}, {size}), 0), 0)
        tl.store({row_start(body, lengths, form.part)}, length)
        tl.store({row_start(body, totals, form.part)}, tokens)
    """)
    purpose = "Chosen pages in logical order."
    traffic = Traffic(Stage.SELECTION, 2 * NUMBER_BYTES, columns * MARK_BYTES, NUMBER_BYTES)
    return StageFunction("list_pages", purpose, body, traffic)


def need_lists(form: RowForm, body: Body) -> tuple[str, str, str]:
    """Take the arguments that hold the lists, their lengths, and their tokens."""
    return (
        body.need(f"page_list{form.suffix}", "int32 [rows, members, pages]"),
        body.need(f"list_length{form.suffix}", "int32 [rows, members]"),
        body.need(f"list_tokens{form.suffix}", "int32 [rows, members]: of the listed pages"),
    )


def _marks(form: RowForm, columns: int, axis: ScratchAxis) -> tuple[str, str]:
    """Load marks; return an expression that is not 0 for a page with one in some column, too."""
    place = "own" if axis is ScratchAxis.MEMBER_PAGES else "page"
    members = form.members if axis is ScratchAxis.PAGES and form.deal is Deal.DEALT else 1
    width, mark = members * columns, "mark.to(tl.int32)"
    if width == 1:
        return f"mark = tl.load(marks + {place}, mask=there, other=0)", "mark"
    inside = f"there[:, None] & (column < {columns})"
    if members > 1:
        # neighbours in memory belong to all members in turn: those of one are picked from all
        place, mark = "own", f"tl.where(column // {columns} == member, {mark}, 0)"
        inside = f"(own[:, None] * {width} + column < num_pages * {columns}) & (column < {width})"
    return lines(f"""
        column = tl.arange(0, {padded(width)})[None, :]
        inside = {inside}
        mark = tl.load(marks + {place}[:, None] * {width} + column, mask=inside, other=0)
        mark = {mark}
    """), "tl.max(mark, 1)"
