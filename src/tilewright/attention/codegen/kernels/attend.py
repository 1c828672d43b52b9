"""The kernels of attention over listed pages, and the sizes of their blocks."""

from dataclasses import dataclass

from tilewright.attention.codegen.expression.narrow_dot import dot_dtype
from tilewright.attention.codegen.expression.stored import converted, zero_of
from tilewright.attention.codegen.kernels.list_pages import need_lists
from tilewright.attention.codegen.kernels.merge import LOWEST, finish_code, part_code
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.plan.traffic import attend_traffic, pools_of
from tilewright.attention.codegen.source.builder import Body, load_source
from tilewright.attention.codegen.source.file import Emitted, Grid
from tilewright.attention.codegen.source.row import RowForm, row_start
from tilewright.attention.codegen.source.tree import Loop, Statement, code
from tilewright.attention.graph import DType, FlowKind, Geometry

_SMALLEST_DOT = 16  # rows and columns that a product of blocks has at least


@dataclass(frozen=True, slots=True)
class AttendBlocks:
    """Padded to powers of two, as Triton demands of a GPU; a target takes any extent."""

    heads: int
    keys: int
    values: int  # channels that are summed up; under a target those of a whole latent
    page_tokens: int
    pages: int  # of a tile

    @staticmethod
    def of(form: RowForm) -> "AttendBlocks":
        sizes = form.sizes
        pages = max(1, form.tiling.attend_tokens // sizes.page_size)
        if form.target is not None:
            values = sizes.key_dim if sizes.kind is FlowKind.MLA else sizes.value_dim
            return AttendBlocks(sizes.query_heads, sizes.key_dim, values, sizes.page_size, pages)
        heads, keys, values = (
            max(_SMALLEST_DOT, padded(size))
            for size in (sizes.query_heads, sizes.key_dim, sizes.value_dim)
        )
        tokens = padded(sizes.page_size)
        return AttendBlocks(
            heads, keys, values, tokens, max(padded(pages), _SMALLEST_DOT // tokens)
        )

    @property
    def tokens(self) -> int:
        """Tokens of a tile."""
        return self.pages * self.page_tokens


def product_dtype(sizes: Geometry) -> DType:
    """Return what queries and keys, and weights and values, are multiplied in."""
    return dot_dtype(sizes.query_dtype, sizes.kv_dtype)


_ENTRY_BYTES = 8  # of a block number, as places in pools are counted
_REGISTER_SHARE = 4  # block numbers may fill one register in so many


def emit_attend_pages(form: RowForm, *, chosen: str | None, is_listed: bool = True) -> Emitted:
    """Emit an online softmax over one part of each list; ``chosen`` if query heads have own pages.

    What is not listed is dense: all pages of the row, or of the member.
    """
    body = Body()
    start = form.preamble(body)
    blocks = AttendBlocks.of(form)
    if form.target is None:
        what = f"at most {form.tiling.part_pages} listed pages: a program for row and part"
        ending = part_code(form, body, "tl.program_id(1)")
    else:
        what = "listed pages" if is_listed else "all pages"
        what += ": a program for each " + ("row" if form.part is None else "row and member")
        ending = end_code(form, body)
    body.statements = [
        *start,
        *attend_code(form, body, chosen=chosen, is_listed=is_listed),
        *code(f"value_channel = tl.arange(0, {blocks.values})[None, :]"),
        *ending,
    ]
    grid = Grid.ROW_PARTS if form.target is None else Grid.ROW_MEMBERS
    once = form.target is not None
    traffic = attend_traffic(form.sizes, is_listed=is_listed, loads_latents_once=once)
    return Emitted.of(f"attend_pages{form.suffix}", f"Softmax over {what}.", body, grid, traffic)


def end_code(form: RowForm, body: Body) -> list[Statement]:
    """Store the result of a row, or of the part of it that a member has."""
    if form.part is None:
        return finish_code(form, body)
    return part_code(form, body, form.part)


def attend_code(
    form: RowForm, body: Body, *, chosen: str | None, is_listed: bool
) -> list[Statement]:
    """Compute ``largest``, ``total`` and ``weighted`` of the member, or of the program's part."""
    sizes, blocks = form.sizes, AttendBlocks.of(form)
    heads, keys = sizes.query_heads, sizes.key_dim
    body.need("q_in", f"{sizes.query_dtype} [requests, KV heads, {heads}, {keys}]")
    for name, width in pools_of(sizes).items():
        body.need(name, f"{sizes.kv_dtype} [KV heads, blocks, {sizes.page_size}, {width}]")
    body.need("num_blocks", "blocks of the pools")
    walk = _Walk(form, body, blocks, is_listed)
    make = _Products(form, body, blocks, chosen)
    body.need("scale", "factor of logits")
    start = [
        *walk.range_code(),
        *_query_code(sizes, blocks, body),
        *make.start_code(),
        *walk.ahead_code(),
    ]
    softmax = _softmax_code(sizes)
    ending = code("largest, total = tl.trans(largest), tl.trans(total)")
    if not walk.reads_ahead:
        turn = [*walk.tile_code("start"), *make.logit_code("logits", "values"), *softmax]
        return [*start, Loop.over("start", "first", "stop", blocks.pages, turn), *ending]
    # logits of the next tile are there before those of this one are needed: units stay busy
    ahead = make.logit_code("next_logits", "next_values")
    take = code("logits, values = next_logits, next_values")
    turn = [*take, *walk.tile_code(f"start + {blocks.pages}"), *ahead, *softmax]
    loop = Loop.over("start", "first", f"stop - {blocks.pages}", blocks.pages, turn)
    return [*start, *walk.tile_code("first"), *ahead, loop, *take, *softmax, *ending]


def _query_code(sizes: Geometry, blocks: AttendBlocks, body: Body) -> list[Statement]:
    heads, keys = sizes.query_heads, sizes.key_dim
    inside = _inside(("query_head", heads, blocks.heads), ("key_channel", keys, blocks.keys))
    place = f"{row_start(body, 'q_in')} + query_head * {keys} + key_channel"
    loaded = converted(load_source(place, inside), sizes.query_dtype, product_dtype(sizes))
    return code(f"""
        query_head = tl.arange(0, {blocks.heads})[:, None]
        key_channel = tl.arange(0, {blocks.keys})[None, :]
        query = {loaded}
        query = tl.trans(query)  # once, so that no tile of keys has to be
        largest = tl.full((1, {blocks.heads}), {LOWEST}, tl.float32)
        total = tl.zeros((1, {blocks.heads}), tl.float32)
        weighted = tl.zeros(({blocks.heads}, {blocks.values}), tl.float32)
    """)


def _inside(*axes: tuple[str, int, int]) -> list[str]:
    """Return conditions that leave padding out, each of a name, its size and the padded one."""
    return [f"({name} < {size})" for name, size, padded in axes if size != padded]


@dataclass(frozen=True, slots=True)
class _Walk:
    """From the entries of a list to the blocks of a tile."""

    form: RowForm
    body: Body
    blocks: AttendBlocks
    is_listed: bool

    @property
    def reads_ahead(self) -> bool:
        return self.form.target is not None and self.form.cut.reads_ahead

    @property
    def kept_entries(self) -> int | None:
        """Entries of a row's table that stay on the chip, in whole tiles, if they are few."""
        if self.form.target is None or self.is_listed:
            return None
        pages = self.blocks.pages
        entries = padded(-(-self.form.target.pages // pages) * pages)
        is_small = entries * _ENTRY_BYTES * _REGISTER_SHARE <= self.form.target.register_bytes
        return entries if is_small else None

    def range_code(self) -> list[Statement]:
        """Set the entries of the program: ``first`` to ``stop``, with ``num_listed`` tokens."""
        body, form = self.body, self.form
        table = code(f"table = {form.table(body)}")
        if not self.is_listed:
            last = form.page_of(f"({form.num_own} - 1)")
            missing = f"tl.maximum(({last} + 1) * {self.form.page_size} - num_tokens, 0)"
            return table + code(f"""
                first = 0
                stop = {form.num_own}
                num_listed = {form.num_own} * {self.form.page_size} - {missing}
            """)
        lists, lengths, tokens = need_lists(form, body)
        first, stop = "0", f"tl.load({row_start(body, lengths, form.part)})"
        if form.target is None:
            pages = self.form.tiling.part_pages
            first, stop = f"tl.program_id(1) * {pages}", f"tl.minimum(first + {pages}, {stop})"
        return table + code(f"""
            listed = {row_start(body, lists, form.part)}
            num_listed = tl.load({row_start(body, tokens, form.part)})
            first = {first}
            stop = {stop}
        """)

    def ahead_code(self) -> list[Statement]:
        """Load the block numbers of all tiles, or of the first, and what goes on from there."""
        pages = self.blocks.pages
        lines = code(f"""
            offset = tl.arange(0, {pages})
            token = tl.arange(0, {self.blocks.page_tokens})[None, :]
        """)
        if not self.reads_ahead:
            return lines
        if self.kept_entries is not None:
            return lines + code(f"""
                row_entry = tl.arange(0, {self.kept_entries})
                row_blocks = {self._block("row_entry")}.to(tl.int64)
            """)
        return lines + code(f"""
            {self._page("offset")}
            next_block = {self._block("offset")}
            {self._page(f"{pages} + offset")}
        """)

    def tile_code(self, start: str) -> list[Statement]:
        """Take the blocks of a tile and the tokens that are there.

        If it reads ahead, block numbers that are not kept are loaded a tile ahead, and entries of
        the list two: a program waits for neither.
        """
        pages = self.blocks.pages
        lines = code(f"entry = {start} + offset")
        if not self.reads_ahead:
            lines += code(f"""
                {self._page("entry")}
                block = {self._block("entry")}.to(tl.int64)
            """)
        elif self.kept_entries is not None:
            lines += code("block = tl.gather(row_blocks, entry, 0)")
        else:
            lines += code(f"""
                block = next_block.to(tl.int64)
                next_block = {self._block(f"entry + {pages}")}
                {self._page(f"entry + {2 * pages}")}
            """)
        return lines + code(f"there = {self._there()}")

    def _page(self, entry: str) -> str:
        """Load pages that are listed; return nothing where all pages are read."""
        loaded = f"tl.load(listed + {entry}, mask={entry} < stop, other=0)"
        return f"page = {loaded}" if self.is_listed else ""

    def _block(self, entry: str) -> str:
        place = "page" if self.is_listed else entry
        return f"tl.load(table + {place}, mask={entry} < stop, other=0)"

    def _there(self) -> str:
        conditions = [f"(entry[:, None] * {self.form.page_size} + token < num_listed)"]
        if self.form.target is None:
            conditions.append("(entry[:, None] < stop)")
        if self.blocks.page_tokens != self.form.page_size:
            conditions.append(f"(token < {self.form.page_size})")
        return " & ".join(conditions)


@dataclass(frozen=True, slots=True)
class _Products:
    """From the blocks of a tile to its logits and values."""

    form: RowForm
    body: Body
    blocks: AttendBlocks
    chosen: str | None

    def start_code(self) -> list[Statement]:
        """Set where the pools of the row's KV head begin."""
        size, pools = self.form.sizes.page_size, pools_of(self.form.sizes)
        starts = [
            f"{name}_head = {name} + head * num_blocks * {size * width}"
            for name, width in pools.items()
        ]
        return code("\n".join(starts))

    def logit_code(self, logits: str, values: str) -> list[Statement]:
        """Multiply queries and keys under one name, and load the values under another."""
        sizes, blocks, pools = self.form.sizes, self.blocks, pools_of(self.form.sizes)
        first, *_, last = [next(iter(pools)), *pools]
        lines: list[Statement] = []
        for width in dict.fromkeys(pools.values()):
            place = f"block[:, None, None] * {sizes.page_size * width}"
            lines += code(f"block_of_{width} = {place}")
        lines += self._load_code("keys", first, read=sizes.key_dim, padded=blocks.keys)
        lines += code(f"{logits} = tl.dot(keys, query{_precision(sizes)}) * scale")
        if self.chosen is not None:
            lines += self._choice_code(logits, self.chosen)
        flat = f"tl.reshape(there, ({blocks.tokens}, 1))"
        lines += code(f'{logits} = tl.where({flat}, {logits}, float("-inf"))')
        if self.form.target is not None and len(pools) == 1:
            # channels beyond the value are not stored
            return lines + code(f"{values} = keys")
        return lines + self._load_code(values, last, read=sizes.value_dim, padded=blocks.values)

    def _load_code(self, name: str, pool: str, *, read: int, padded: int) -> list[Statement]:
        """Load the first ``read`` channels of all tokens of a tile: [tokens, padded]."""
        sizes = self.form.sizes
        width, dtypes = pools_of(sizes)[pool], (sizes.kv_dtype, product_dtype(sizes))
        inside = "there[:, :, None]" + ("" if read == padded else f" & (channel < {read})")
        shaped = f"tl.reshape({name}, ({self.blocks.tokens}, {padded}))"
        return code(f"""
            channel = tl.arange(0, {padded})[None, None, :]
            places = {pool}_head + block_of_{width} + token[:, :, None] * {width} + channel
            {name} = tl.load(places, mask={inside}, other={zero_of(sizes.kv_dtype)})
            {name} = {converted(shaped, *dtypes)}
        """)

    def _choice_code(self, logits: str, chosen: str) -> list[Statement]:
        """Leave out what a query head has not chosen."""
        blocks, heads = self.blocks, self.form.sizes.query_heads
        self.body.need(chosen, f"int8 [rows, pages, 1, {heads}]: who chose a page")
        here, page = "", self.form.page_of("page")
        if self.form.target is not None and self.form.cut.reads_ahead:
            page = self.form.page_of("here")  # page is that of a later tile
            here = "here = tl.load(listed + entry, mask=entry < stop, other=0)"
        chooser = _inside(("chooser", heads, blocks.heads))
        spread = f"({blocks.pages}, {blocks.page_tokens}, {blocks.heads})"
        return code(f"""
            {here}
            chooser = tl.arange(0, {blocks.heads})[None, :]
            places = {row_start(self.body, chosen)} + ({page})[:, None] * {heads} + chooser
            mark = {load_source("places", ["(entry[:, None] < stop)", *chooser])}
            mark = tl.broadcast_to(mark[:, None, :], {spread})
            mark = tl.reshape(mark, ({blocks.tokens}, {blocks.heads}))
            {logits} = tl.where(mark != 0, {logits}, float("-inf"))
        """)


def _precision(sizes: Geometry) -> str:
    return ', input_precision="ieee"' if product_dtype(sizes) is DType.FLOAT32 else ""


def _softmax_code(sizes: Geometry) -> list[Statement]:
    """Merge a tile into what the part has so far."""
    narrow = converted("weights", DType.FLOAT32, product_dtype(sizes))
    return code(f"""
        new_largest = tl.maximum(largest, tl.max(logits, 0, keep_dims=True))
        weights = tl.exp(logits - new_largest)
        earlier = tl.exp(largest - new_largest)
        total = total * earlier + tl.sum(weights, 0, keep_dims=True)
        weighted = weighted * tl.trans(earlier)
        weighted = tl.dot(tl.trans({narrow}), values, weighted{_precision(sizes)})
        largest = new_largest
    """)
