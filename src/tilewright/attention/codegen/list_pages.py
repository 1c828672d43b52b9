"""The kernel that packs chosen pages into lists."""

from tilewright.attention.codegen.body import Body, padded
from tilewright.attention.codegen.kernel_file import Grid, Kernel, ScratchAxis, Stage
from tilewright.attention.codegen.loop_text import indented, without_unused
from tilewright.attention.codegen.row_text import RowForm, row_start
from tilewright.attention.codegen.target import Deal
from tilewright.attention.codegen.text import kernel_text
from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.codegen.traffic import list_traffic

__all__ = ("emit_list_pages", "list_lines")


def emit_list_pages(
    tiling: Tiling, form: RowForm, *, chosen: str, columns: int, axis: ScratchAxis
) -> tuple[Kernel, str]:
    """Pages that some query head chose, in logical order, how many they are, and their tokens."""
    body = Body(page_tokens=None)
    body.lines += form.preamble(body)
    body.lines += list_lines(tiling, form, body, chosen=chosen, columns=columns, axis=axis)
    what = "row" if form.part is None else "row and member"
    grid = Grid.ROWS if form.target is None else Grid.ROW_MEMBERS
    purpose = f"Chosen pages in logical order: a program for each {what}."
    kernel = Kernel(
        "list_pages",
        grid,
        tuple(body.arguments),
        stages=(Stage.SELECTION,),
        traffic=(list_traffic(columns),),
    )
    return kernel, kernel_text(kernel.name, purpose, body.arguments, without_unused(body.lines))


def list_lines(
    tiling: Tiling, form: RowForm, body: Body, *, chosen: str, columns: int, axis: ScratchAxis
) -> list[str]:
    """Listed are numbers of a member's own pages; ``axis`` says how the marks lie."""
    pages = "rows, pages" if axis is ScratchAxis.PAGES else "rows, members, pages"
    body.need(chosen, f"int8 [{pages}, 1, {columns}]")
    body.need("first_reserved", "pages that every row reads at its beginning")
    body.need("last_reserved", "and at its end")
    body.need("reads_all", "int8 [rows]: whether the plan makes a row dense")
    body.need("page_list", "int32 [rows, members, pages]")
    body.need("list_length", "int32 [rows, members]")
    body.need("list_tokens", "int32 [rows, members]: of the listed pages")
    marks = row_start(body, chosen, form.part if axis is ScratchAxis.MEMBER_PAGES else None)
    listed = row_start(body, "page_list", form.part)
    tile, size = tiling.row_tile, form.page_size
    block, mark = _marks(form, columns, axis)
    loop = [
        f"own = start + tl.arange(0, {tile})",
        f"page = {form.page_of('own')}",
        f"there = own < {form.num_own}",
        *block,
        f"read = (({mark} | everything) != 0) | (page < first_reserved)",
        "read = (read | (page >= num_pages - last_reserved)) & there",
        "place = length + tl.cumsum(read.to(tl.int32), 0) - 1",
        "tl.store(listed + place, own, mask=read)",
        "length += tl.sum(read.to(tl.int32), 0)",
        f"tokens += tl.sum(tl.where(read, tl.minimum(num_tokens - page * {size}, {size}), 0), 0)",
    ]
    return [
        "everything = tl.load(reads_all + row)",
        f"marks = {marks}",
        f"listed = {listed}",
        "length = tl.zeros((), tl.int32)",
        "tokens = tl.zeros((), tl.int32)",
        f"for start in range(0, {form.num_own}, {tile}):",
        *indented(loop),
        f"tl.store({row_start(body, 'list_length', form.part)}, length)",
        f"tl.store({row_start(body, 'list_tokens', form.part)}, tokens)",
    ]


def _marks(form: RowForm, columns: int, axis: ScratchAxis) -> tuple[list[str], str]:
    """Loading marks, and an expression that is not 0 for a page with one in some column."""
    place = "own" if axis is ScratchAxis.MEMBER_PAGES else "page"
    members = form.members if axis is ScratchAxis.PAGES and form.deal is Deal.DEALT else 1
    if columns == members == 1:
        return [f"mark = tl.load(marks + {place}, mask=there, other=0)"], "mark"
    if members == 1:
        return [
            f"column = tl.arange(0, {padded(columns)})[None, :]",
            f"inside = there[:, None] & (column < {columns})",
            f"mark = tl.load(marks + {place}[:, None] * {columns} + column, mask=inside, other=0)",
            "mark = mark.to(tl.int32)",
        ], "tl.max(mark, 1)"
    # neighbours in memory belong to all members in turn: those of one are picked from all
    width = members * columns
    return [
        f"column = tl.arange(0, {padded(width)})[None, :]",
        f"inside = (own[:, None] * {width} + column < num_pages * {columns}) & (column < {width})",
        f"mark = tl.load(marks + own[:, None] * {width} + column, mask=inside, other=0)",
        f"mark = tl.where(column // {columns} == member, mark.to(tl.int32), 0)",
    ], "tl.max(mark, 1)"
