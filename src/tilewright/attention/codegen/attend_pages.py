"""The kernels of attention over listed pages."""

from tilewright.attention.codegen.attend_blocks import AttendBlocks, pools_of, product_dtype
from tilewright.attention.codegen.body import Body
from tilewright.attention.codegen.kernel_file import Grid, Kernel, Stage
from tilewright.attention.codegen.loop_text import indented
from tilewright.attention.codegen.merge_parts import finish_lines, part_lines
from tilewright.attention.codegen.row_text import RowForm, row_start
from tilewright.attention.codegen.text import kernel_text
from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.graph import DType, Geometry

__all__ = ("attend_lines", "emit_attend_pages")


def emit_attend_pages(
    sizes: Geometry, tiling: Tiling, form: RowForm, *, chosen: str | None, is_listed: bool = True
) -> tuple[Kernel, str]:
    """Online softmax over one part of each list; ``chosen`` if query heads have own pages.

    What is not listed is dense: all pages of the row, or of the member.
    """
    body = Body(page_tokens=None)
    start = form.preamble(body)
    blocks = AttendBlocks.of(sizes, tiling, is_exact=form.target is not None)
    if form.target is None:
        what = f"at most {tiling.part_pages} listed pages: a program for row and part"
        ending = part_lines(sizes, body, "tl.program_id(1)")
    else:
        what = "listed pages" if is_listed else "all pages"
        what += ": a program for each " + ("row" if form.part is None else "row and member")
        ending = part_lines(sizes, body, form.part) if form.part else finish_lines(sizes, body)
    body.lines += [
        *start,
        *attend_lines(sizes, tiling, form, body, chosen=chosen, is_listed=is_listed),
        *_edge_lines(blocks, ending),
    ]
    grid = Grid.ROW_PARTS if form.target is None else Grid.ROW_MEMBERS
    kernel = Kernel("attend_pages", grid, tuple(body.arguments), stages=(Stage.ATTENTION,))
    return kernel, kernel_text(kernel.name, f"Softmax over {what}.", body.arguments, body.lines)


def attend_lines(
    sizes: Geometry,
    tiling: Tiling,
    form: RowForm,
    body: Body,
    *,
    chosen: str | None,
    is_listed: bool,
) -> list[str]:
    """Leaves ``largest``, ``total`` and ``weighted`` of the member, or of the program's part."""
    blocks = AttendBlocks.of(sizes, tiling, is_exact=form.target is not None)
    heads, keys = sizes.query_heads, sizes.key_dim
    body.need("q_in", f"{sizes.query_dtype} [requests, KV heads, {heads}, {keys}]")
    for name, width in pools_of(sizes).items():
        body.need(name, f"{sizes.kv_dtype} [KV heads, blocks, {sizes.page_size}, {width}]")
    body.need("num_blocks", "blocks of the pools")
    walk = _Walk(sizes, tiling, form, body, blocks, is_listed=is_listed)
    tile = [*walk.tile_lines(), *_logit_lines(sizes, blocks, form, body, chosen)]
    return [
        *walk.range_lines(),
        *_query_lines(sizes, blocks, body),
        *walk.ahead_lines(),
        f"for start in range(first, stop, {blocks.pages}):",
        *indented([*tile, *_softmax_lines(sizes, blocks, form)]),
    ]


def _query_lines(sizes: Geometry, blocks: AttendBlocks, body: Body) -> list[str]:
    heads, keys = sizes.query_heads, sizes.key_dim
    inside = _inside(("query_head", heads, blocks.heads), ("key_channel", keys, blocks.keys))
    mask = f", mask={inside}, other=0" if inside else ""
    place = f"{row_start(body, 'q_in')} + query_head * {keys} + key_channel"
    return [
        f"query_head = tl.arange(0, {blocks.heads})[:, None]",
        f"key_channel = tl.arange(0, {blocks.keys})[None, :]",
        f"query = {_converted(f'tl.load({place}{mask})', sizes.query_dtype, product_dtype(sizes))}",
        f'largest = tl.full(({blocks.heads}, 1), float("-inf"), tl.float32)',
        f"total = tl.zeros(({blocks.heads}, 1), tl.float32)",
        f"weighted = tl.zeros(({blocks.heads}, {blocks.values}), tl.float32)",
    ]


def _converted(text: str, stored: DType, wanted: DType) -> str:
    return text if stored is wanted else f"{text}.to(tl.{wanted})"


def _inside(*axes: tuple[str, int, int]) -> str:
    """Conditions that leave padding out: of a name, its size and the padded one."""
    return " & ".join(f"({name} < {size})" for name, size, padded in axes if size != padded)


class _Walk:
    """From the entries of a list to the blocks of a tile."""

    def __init__(
        self,
        sizes: Geometry,
        tiling: Tiling,
        form: RowForm,
        body: Body,
        blocks: AttendBlocks,
        *,
        is_listed: bool,
    ) -> None:
        self._sizes, self._tiling, self._form, self._body = sizes, tiling, form, body
        self._blocks, self._is_listed = blocks, is_listed
        self._size = sizes.page_size
        self._reads_ahead = form.target is not None and form.cut.reads_ahead

    def range_lines(self) -> list[str]:
        """Which entries the program looks at: ``first`` to ``stop``, with ``num_listed`` tokens."""
        body, form = self._body, self._form
        lines = [f"table = {form.table(body)}"]
        if not self._is_listed:
            last = form.page_of(f"({form.num_own} - 1)")
            missing = f"tl.maximum(({last} + 1) * {self._size} - num_tokens, 0)"
            tokens = f"{form.num_own} * {self._size} - {missing}"
            return [*lines, "first = 0", f"stop = {form.num_own}", f"num_listed = {tokens}"]
        body.need("page_list", "int32 [rows, members, pages]")
        body.need("list_length", "int32 [rows, members]")
        body.need("list_tokens", "int32 [rows, members]: of the listed pages")
        length = f"tl.load({row_start(body, 'list_length', form.part)})"
        lines += [
            f"listed = {row_start(body, 'page_list', form.part)}",
            f"num_listed = tl.load({row_start(body, 'list_tokens', form.part)})",
        ]
        if form.target is not None:
            return [*lines, "first = 0", f"stop = {length}"]
        pages = self._tiling.part_pages
        return [
            *lines,
            f"first = tl.program_id(1) * {pages}",
            f"stop = tl.minimum(first + {pages}, {length})",
        ]

    def ahead_lines(self) -> list[str]:
        """Block numbers of the first tile, and what goes on from there."""
        pages = self._blocks.pages
        lines = [
            f"offset = tl.arange(0, {pages})",
            f"token = tl.arange(0, {self._blocks.page_tokens})[None, :]",
        ]
        if not self._reads_ahead:
            return lines
        if self._is_listed:
            lines.append(f"page = {self._page('offset')}")
        lines.append(f"next_block = {self._block('offset')}")
        if self._is_listed:
            lines.append(f"page = {self._page(f'{pages} + offset')}")
        return lines

    def tile_lines(self) -> list[str]:
        """The blocks of a tile and the tokens that are there.

        Under a target block numbers are loaded a tile ahead, and entries of the list two: a
        program waits for neither.
        """
        pages = self._blocks.pages
        lines = ["entry = start + offset"]
        if not self._reads_ahead:
            lines += [f"page = {self._page('entry')}"] if self._is_listed else []
            lines.append(f"block = {self._block('entry')}.to(tl.int64)")
        else:
            lines += [
                "block = next_block.to(tl.int64)",
                f"next_block = {self._block(f'entry + {pages}')}",
            ]
            lines += [f"page = {self._page(f'entry + {2 * pages}')}"] if self._is_listed else []
        return [*lines, f"there = {self._there()}"]

    def _page(self, entry: str) -> str:
        return f"tl.load(listed + {entry}, mask={entry} < stop, other=0)"

    def _block(self, entry: str) -> str:
        place = "page" if self._is_listed else entry
        return f"tl.load(table + {place}, mask={entry} < stop, other=0)"

    def _there(self) -> str:
        conditions = [f"(entry[:, None] * {self._size} + token < num_listed)"]
        if self._form.target is None:
            conditions.append("(entry[:, None] < stop)")
        if self._blocks.page_tokens != self._size:
            conditions.append(f"(token < {self._size})")
        return " & ".join(conditions)


def _load_lines(
    name: str, pool: str, sizes: Geometry, blocks: AttendBlocks, *, read: int, padded: int
) -> list[str]:
    """The first ``read`` channels of all tokens of a tile: [tokens, padded]."""
    width, size = pools_of(sizes)[pool], sizes.page_size
    dtypes = sizes.kv_dtype, product_dtype(sizes)
    inside = "there[:, :, None]" + ("" if read == padded else f" & (channel < {read})")
    start = f"{pool} + place[:, None, None] * {size * width}"
    return [
        f"channel = tl.arange(0, {padded})[None, None, :]",
        f"places = {start} + token[:, :, None] * {width} + channel",
        f"{name} = tl.load(places, mask={inside}, other=0)",
        f"{name} = {_converted(f'tl.reshape({name}, ({blocks.tokens}, {padded}))', *dtypes)}",
    ]


def _logit_lines(
    sizes: Geometry, blocks: AttendBlocks, form: RowForm, body: Body, chosen: str | None
) -> list[str]:
    pool = next(iter(pools_of(sizes)))
    precision = ', input_precision="ieee"' if product_dtype(sizes) is DType.FLOAT32 else ""
    body.need("scale", "factor of logits")
    lines = [
        "place = head * num_blocks + block",
        *_load_lines("keys", pool, sizes, blocks, read=sizes.key_dim, padded=blocks.keys),
        f"logits = tl.dot(query, tl.trans(keys){precision}) * scale",
    ]
    if chosen is not None:
        lines += _choice_lines(sizes, blocks, form, body, chosen)
    flat = f"tl.reshape(there, (1, {blocks.tokens}))"
    return [*lines, f'logits = tl.where({flat}, logits, float("-inf"))']


def _choice_lines(
    sizes: Geometry, blocks: AttendBlocks, form: RowForm, body: Body, chosen: str
) -> list[str]:
    """Leave out what a query head has not chosen."""
    heads, pages = sizes.query_heads, blocks.pages
    body.need(chosen, f"int8 [rows, pages, 1, {heads}]: who chose a page")
    here = form.page_of("page")
    lines = []
    if (
        form.target is not None and form.cut.reads_ahead
    ):  # the numbers of this tile were overtaken by those of a later one
        here = form.page_of("here")
        lines.append("here = tl.load(listed + entry, mask=entry < stop, other=0)")
    inside = " & ".join(
        part
        for part in ("(entry[:, None] < stop)", _inside(("chooser", heads, blocks.heads)))
        if part
    )
    spread = f"({blocks.heads}, {pages}, {blocks.page_tokens})"
    return [
        *lines,
        f"chooser = tl.arange(0, {blocks.heads})[None, :]",
        f"places = {row_start(body, chosen)} + ({here})[:, None] * {heads} + chooser",
        f"mark = tl.trans(tl.load(places, mask={inside}, other=0))",
        f"mark = tl.broadcast_to(mark[:, :, None], {spread})",
        f"mark = tl.reshape(mark, ({blocks.heads}, {blocks.tokens}))",
        'logits = tl.where(mark != 0, logits, float("-inf"))',
    ]


def _softmax_lines(sizes: Geometry, blocks: AttendBlocks, form: RowForm) -> list[str]:
    """Merge a tile into what the part has so far; no token yet is minus infinity and 0."""
    dtype = product_dtype(sizes)
    precision = ', input_precision="ieee"' if dtype is DType.FLOAT32 else ""
    *_, pool = pools_of(sizes)
    read, padded = sizes.value_dim, blocks.values
    if form.target is not None and len(pools_of(sizes)) == 1:
        values = ["values = keys"]  # loaded once; channels beyond the value are not stored
    else:
        values = _load_lines("values", pool, sizes, blocks, read=read, padded=padded)
    return [
        *values,
        "new_largest = tl.maximum(largest, tl.max(logits, 1, keep_dims=True))",
        'shift = tl.where(new_largest == float("-inf"), 0.0, new_largest)',
        "weights = tl.exp(logits - shift)",
        "earlier = tl.exp(largest - shift)",
        "total = total * earlier + tl.sum(weights, 1, keep_dims=True)",
        f"product = tl.dot({_converted('weights', DType.FLOAT32, dtype)}, values{precision})",
        "weighted = weighted * earlier + product",
        "largest = new_largest",
    ]


def _edge_lines(blocks: AttendBlocks, ending: list[str]) -> list[str]:
    return [f"value_channel = tl.arange(0, {blocks.values})[None, :]", *ending]
