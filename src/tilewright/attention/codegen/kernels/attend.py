"""The kernels of attention over listed pages, and the sizes of their blocks."""

from dataclasses import dataclass

from tilewright.attention.codegen.expression.memory import converted, zero_of
from tilewright.attention.codegen.expression.narrow_dot import dot_dtype
from tilewright.attention.codegen.kernels.merge import LOWEST, finish_code, merge_stage, part_code
from tilewright.attention.codegen.kernels.select import need_lists
from tilewright.attention.codegen.plan.target import Merge, padded
from tilewright.attention.codegen.plan.traffic import attend_traffic, pools_of
from tilewright.attention.codegen.source.builder import Body, load_source, unpadded
from tilewright.attention.codegen.source.file import Emitted, Grid, StageFunction
from tilewright.attention.codegen.source.row import RowForm, row_start
from tilewright.attention.codegen.source.tree import Source, joined, lines
from tilewright.attention.graph import DType, FlowKind

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
        sizes, tokens = form.sizes, form.sizes.page_size
        pages = max(1, form.tiling.attend_tokens // tokens)
        if form.target is not None:
            values = sizes.key_dim if sizes.kind is FlowKind.MLA else sizes.value_dim
            return AttendBlocks(sizes.query_heads, sizes.key_dim, values, tokens, pages)
        channels = (sizes.query_heads, sizes.key_dim, sizes.value_dim)
        heads, keys, values = (max(_SMALLEST_DOT, padded(size)) for size in channels)
        pages = max(padded(pages), _SMALLEST_DOT // padded(tokens))
        return AttendBlocks(heads, keys, values, padded(tokens), pages)

    @property
    def tokens(self) -> int:
        """Tokens of a tile."""
        return self.pages * self.page_tokens


_ENTRY_BYTES = 8  # of a block number, as places in pools are counted
_REGISTER_SHARE = 4  # block numbers may fill one register in so many


def attend_stages(
    form: RowForm, *, chosen: str | None, is_listed: bool = True
) -> list[StageFunction]:
    """Attend to listed pages, or to all; ``chosen`` if query heads have pages of their own.

    It ends with what is stored: the result of a row or of a part of it. Members with queues give
    theirs back, and merge in a stage of their own.
    """
    body, once = form.body(), form.target is not None
    traffic = attend_traffic(form.sizes, is_listed=is_listed, loads_latents_once=once)
    purpose = f"Softmax over {'listed' if is_listed else 'all'} pages."
    body.add(attend_code(form, body, chosen=chosen, is_listed=is_listed))
    if form.merge is Merge.IPCQ:
        result = "largest, total, weighted"
        attending = StageFunction("attend_pages", purpose, body, traffic, result=result)
        return [attending, merge_stage(form, AttendBlocks.of(form).values)]
    body.add(_end_code(form, body))
    return [StageFunction("attend_pages", purpose, body, traffic)]


def emit_attend_pages(form: RowForm, *, chosen: str | None) -> Emitted:
    """Emit an online softmax over one part of each list, or of the list of a member."""
    body, once = Body(), form.target is not None
    start, ending = form.preamble(body), _end_code(form, body)
    what, each, grid = "listed pages", f"each {form.program}", Grid.ROW_MEMBERS
    if form.target is None:
        what, grid = f"at most {form.tiling.part_pages} listed pages", Grid.ROW_PARTS
        each = "row and part"
    attention = attend_code(form, body, chosen=chosen, is_listed=True)
    body.add(joined([start, attention, ending]))
    traffic = attend_traffic(form.sizes, is_listed=True, loads_latents_once=once)
    purpose = f"Softmax over {what}: a program for {each}."
    return Emitted.of(f"attend_pages{form.suffix}", purpose, body, grid, traffic)


def _end_code(form: RowForm, body: Body) -> Source:
    """Store the result of a row, or of the part of it that a program has."""
    part = "tl.program_id(1)" if form.target is None else form.part
    channels = f"value_channel = tl.arange(0, {AttendBlocks.of(form).values})[None, :]"
    stores = finish_code(form, body) if part is None else part_code(form, body, part)
    return joined([channels, stores])


def attend_code(form: RowForm, body: Body, *, chosen: str | None, is_listed: bool) -> Source:
    """Compute ``largest``, ``total`` and ``weighted`` of the member, or of the program's part."""
    sizes = form.sizes
    shape = f"{sizes.query_heads}, {sizes.key_dim}"
    body.need("q_in", f"{sizes.query_dtype} [requests, KV heads, {shape}]")
    for name, width in pools_of(sizes).items():
        body.need(name, f"{sizes.kv_dtype} [KV heads, blocks, {sizes.page_size}, {width}]")
    body.need_all("num_blocks", "scale")
    product = dot_dtype(sizes.query_dtype, sizes.kv_dtype)
    of = _Attention(form, body, AttendBlocks.of(form), chosen, is_listed, product)
    start = joined([of.range_code(), of.ahead_code()])
    pages, softmax = of.blocks.pages, of.softmax_code()
    if not of.reads_ahead:
        return lines(f"""
            {start}
            for start in range(first, stop, {pages}):
                {of.tile_code("start")}
                {of.logit_code("logits", "values")}
                {softmax}
            largest, total = tl.trans(largest), tl.trans(total)
        """)
    # logits of the next tile are there before those of this one are needed: units stay busy
    ahead = of.logit_code("next_logits", "next_values")
    return lines(f"""
        {start}
        {of.tile_code("first")}
        {ahead}
        for start in range(first, stop - {pages}, {pages}):
            logits, values = next_logits, next_values
            {of.tile_code(f"start + {pages}")}
            {ahead}
            {softmax}
        logits, values = next_logits, next_values
        {softmax}
        largest, total = tl.trans(largest), tl.trans(total)
    """)


@dataclass(frozen=True, slots=True)
class _Attention:
    """The statements of attention: from entries of a list to blocks, then to logits and values."""

    form: RowForm
    body: Body
    blocks: AttendBlocks
    chosen: str | None
    is_listed: bool
    product: DType  # that queries and keys, and weights and values, are multiplied in

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

    @property
    def precision(self) -> str:
        return ', input_precision="ieee"' if self.product is DType.FLOAT32 else ""

    def range_code(self) -> Source:
        """Set the entries of the program: ``first`` to ``stop``, with ``num_listed`` tokens."""
        body, form, size = self.body, self.form, self.form.sizes.page_size
        table, first = form.table(body), "0"
        if not self.is_listed:
            last, stop = form.page_of(f"({form.num_own} - 1)"), form.num_own
            missing = f"tl.maximum(({last} + 1) * {size} - num_tokens, 0)"
            return lines(f"""
                table = {table}
                first = {first}
                stop = {stop}
                num_listed = {stop} * {size} - {missing}
            """)
        lists, lengths, tokens = need_lists(form, body)
        stop = f"tl.load({row_start(body, lengths, form.part)})"
        if form.target is None:
            pages = form.tiling.part_pages
            first, stop = f"tl.program_id(1) * {pages}", f"tl.minimum(first + {pages}, {stop})"
        return lines(f"""
            table = {table}
            listed = {row_start(body, lists, form.part)}
            num_listed = tl.load({row_start(body, tokens, form.part)})
            first = {first}
            stop = {stop}
        """)

    def ahead_code(self) -> Source:
        """Load the queries of the row, begin its softmax, and load what comes ahead of tiles.

        That is the block numbers of all tiles, or of the first, and what goes on from there.
        """
        sizes, blocks = self.form.sizes, self.blocks
        heads, keys = sizes.query_heads, sizes.key_dim
        inside = unpadded(("query_head", heads, blocks.heads), ("key_channel", keys, blocks.keys))
        place = f"{row_start(self.body, 'q_in')} + query_head * {keys} + key_channel"
        query = converted(load_source(place, inside), sizes.query_dtype, self.product)
        starts = [
            f"{name}_head = {name} + head * num_blocks * {sizes.page_size * width}"
            for name, width in pools_of(sizes).items()
        ]
        steps = [""]
        if self.reads_ahead and self.kept_entries is not None:
            steps = [f"row_entry = tl.arange(0, {self.kept_entries})"]
            steps.append(f"row_blocks = {self._block('row_entry')}.to(tl.int64)")
        elif self.reads_ahead:
            steps = [self._page("offset"), f"next_block = {self._block('offset')}"]
            steps.append(self._page(f"{blocks.pages} + offset"))
        return lines(f"""
            query_head = tl.arange(0, {blocks.heads})[:, None]
            key_channel = tl.arange(0, {blocks.keys})[None, :]
            query = {query}
            query = tl.trans(query)  # once, so that no tile of keys has to be
            largest = tl.full((1, {blocks.heads}), {LOWEST}, tl.float32)
            total = tl.zeros((1, {blocks.heads}), tl.float32)
            weighted = tl.zeros(({blocks.heads}, {blocks.values}), tl.float32)
            {"; ".join(starts)}
            offset = tl.arange(0, {blocks.pages})
            token = tl.arange(0, {blocks.page_tokens})[None, :]
            {"; ".join(filter(None, steps))}
        """)

    def tile_code(self, start: str) -> Source:
        """Take the blocks of a tile and the tokens that are there.

        If it reads ahead, block numbers that are not kept are loaded a tile ahead, and entries of
        the list two: a program waits for neither.
        """
        pages, size = self.blocks.pages, self.form.sizes.page_size
        steps = ("block = tl.gather(row_blocks, entry, 0)", "", "")
        if not self.reads_ahead:
            steps = (self._page("entry"), f"block = {self._block('entry')}.to(tl.int64)", "")
        elif self.kept_entries is None:
            steps = (
                "block = next_block.to(tl.int64)",
                f"next_block = {self._block(f'entry + {pages}')}",
                self._page(f"entry + {2 * pages}"),
            )
        there = [f"(entry[:, None] * {size} + token < num_listed)"]
        there += ["(entry[:, None] < stop)"] if self.form.target is None else []
        there += unpadded(("token", size, self.blocks.page_tokens))
        return lines(f"""
            entry = {start} + offset
            {"; ".join(filter(None, steps))}
            there = {" & ".join(there)}
        """)

    def _page(self, entry: str) -> str:
        """Load pages that are listed; return nothing where all pages are read."""
        loaded = f"tl.load(listed + {entry}, mask={entry} < stop, other=0)"
        return f"page = {loaded}" if self.is_listed else ""

    def _block(self, entry: str) -> str:
        place = "page" if self.is_listed else entry
        return f"tl.load(table + {place}, mask={entry} < stop, other=0)"

    def logit_code(self, logits: str, values: str) -> Source:
        """Multiply queries and keys under one name, and load the values under another."""
        sizes, blocks, pools = self.form.sizes, self.blocks, pools_of(self.form.sizes)
        first, *_, last = [next(iter(pools)), *pools]
        places = "; ".join(
            f"block_of_{width} = block[:, None, None] * {sizes.page_size * width}"
            for width in dict.fromkeys(pools.values())
        )
        if self.form.target is not None and len(pools) == 1:
            loaded = lines(f"{values} = keys")  # channels beyond the value are not stored
        else:
            loaded = self._load_code(values, last, read=sizes.value_dim, channels=blocks.values)
        return lines(f"""
            {places}
            {self._load_code("keys", first, read=sizes.key_dim, channels=blocks.keys)}
            {logits} = tl.dot(keys, query{self.precision}) * scale
            {"" if self.chosen is None else self._choice_code(logits, self.chosen)}
            {logits} = tl.where(tl.reshape(there, ({blocks.tokens}, 1)), {logits}, float("-inf"))
            {loaded}
        """)

    def _load_code(self, name: str, pool: str, *, read: int, channels: int) -> Source:
        """Load the first ``read`` channels of all tokens of a tile: [tokens, channels]."""
        width, stored = pools_of(self.form.sizes)[pool], self.form.sizes.kv_dtype
        inside = " & ".join(["there[:, :, None]", *unpadded(("channel", read, channels))])
        shaped = f"tl.reshape({name}, ({self.blocks.tokens}, {channels}))"
        return lines(f"""
            channel = tl.arange(0, {channels})[None, None, :]
            places = {pool}_head + block_of_{width} + token[:, :, None] * {width} + channel
            {name} = tl.load(places, mask={inside}, other={zero_of(stored)})
            {name} = {converted(shaped, stored, self.product)}
        """)

    def _choice_code(self, logits: str, chosen: str) -> Source:
        """Leave out what a query head has not chosen."""
        blocks, heads = self.blocks, self.form.sizes.query_heads
        self.body.need(chosen, f"int8 [rows, pages, 1, {heads}]: who chose a page")
        here, page = "", self.form.page_of("page")
        if self.reads_ahead:
            page = self.form.page_of("here")  # page is that of a later tile
            here = "here = tl.load(listed + entry, mask=entry < stop, other=0)"
        inside = ["(entry[:, None] < stop)", *unpadded(("chooser", heads, blocks.heads))]
        spread = f"({blocks.pages}, {blocks.page_tokens}, {blocks.heads})"
        return lines(f"""
            {here}
            chooser = tl.arange(0, {blocks.heads})[None, :]
            places = {row_start(self.body, chosen)} + ({page})[:, None] * {heads} + chooser
            mark = {load_source("places", inside)}
            mark = tl.broadcast_to(mark[:, None, :], {spread})
            mark = tl.reshape(mark, ({blocks.tokens}, {blocks.heads}))
            {logits} = tl.where(mark != 0, {logits}, float("-inf"))
        """)

    def softmax_code(self) -> Source:
        """Merge a tile into what the part has so far."""
        narrow = converted("weights", DType.FLOAT32, self.product)
        return lines(f"""
            new_largest = tl.maximum(largest, tl.max(logits, 0, keep_dims=True))
            weights = tl.exp(logits - new_largest)
            earlier = tl.exp(largest - new_largest)
            total = total * earlier + tl.sum(weights, 0, keep_dims=True)
            weighted = weighted * tl.trans(earlier)
            weighted = tl.dot(tl.trans({narrow}), values, weighted{self.precision})
            largest = new_largest
        """)
