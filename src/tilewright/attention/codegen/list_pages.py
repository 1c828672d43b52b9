"""The kernel that packs chosen pages into lists."""

from tilewright.attention.codegen.body import Body, padded
from tilewright.attention.codegen.compute_pages import row_preamble
from tilewright.attention.codegen.kernel_file import Grid, Kernel
from tilewright.attention.codegen.text import kernel_text
from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.graph import Graph

__all__ = ("emit_list_pages",)


def emit_list_pages(
    graph: Graph, tiling: Tiling, *, chosen: str, columns: int
) -> tuple[Kernel, str]:
    """Pages that some query head chose, in logical order, and how many they are."""
    body = Body(page_tokens=None)
    body.need(chosen, f"int8 [rows, max_pages, 1, {columns}]")
    start = row_preamble(body, graph.geometry.page_size)
    body.need("max_pages", "pages of the longest row")
    body.need("first_reserved", "pages that every row reads at its beginning")
    body.need("last_reserved", "and at its end")
    body.need("reads_all", "int8 [rows]: whether the plan makes a row dense")
    body.need("page_list", "int32 [rows, max_pages]")
    body.need("list_length", "int32 [rows]")
    tile = tiling.row_tile
    block, mark = _marks(chosen, columns)
    body.lines += [
        *start,
        "everything = tl.load(reads_all + row)",
        "length = tl.zeros((), tl.int32)",
        f"for start in range(0, num_pages, {tile}):",
        f"    page = start + tl.arange(0, {tile})",
        *(f"    {line}" for line in block),
        f"    read = (({mark} | everything) != 0) | (page < first_reserved)",
        "    read = (read | (page >= num_pages - last_reserved)) & (page < num_pages)",
        "    place = length + tl.cumsum(read.to(tl.int32), 0) - 1",
        "    tl.store(page_list + row * max_pages + place, page, mask=read)",
        "    length += tl.sum(read.to(tl.int32), 0)",
        "tl.store(list_length + row, length)",
    ]
    purpose = "Chosen pages in logical order: a program for each row."
    kernel = Kernel("list_pages", Grid.ROWS, tuple(body.arguments))
    return kernel, kernel_text(kernel.name, purpose, body.arguments, body.lines)


def _marks(chosen: str, columns: int) -> tuple[list[str], str]:
    """Loading marks, and an expression that is not 0 for a page with one in some column."""
    if columns == 1:
        place = f"{chosen} + row * max_pages + page"
        return [f"mark = tl.load({place}, mask=page < num_pages, other=0)"], "mark"
    column = f"tl.arange(0, {padded(columns)})[None, :]"
    return [
        f"column = {column}",
        f"place = (row * max_pages + page[:, None]) * {columns} + column",
        f"inside = (page[:, None] < num_pages) & (column < {columns})",
        f"mark = tl.load({chosen} + place, mask=inside, other=0).to(tl.int32)",
    ], "tl.max(mark, 1)"
