"""The kernels of attention over listed pages: parts of a list, and their merge through memory."""

from dataclasses import dataclass

from tilewright.attention.codegen.body import Body, padded
from tilewright.attention.codegen.compute_pages import row_preamble
from tilewright.attention.codegen.kernel_file import Grid, Kernel, Scratch, ScratchAxis
from tilewright.attention.codegen.text import kernel_text
from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.graph import DType, FlowKind, Geometry, Graph

__all__ = ("emit_attend_pages", "emit_merge_parts", "part_scratch")

_SMALLEST_DOT = 16  # rows and columns that a product of blocks has at least


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Padded sizes of the blocks of attention."""

    heads: int
    keys: int
    values: int
    pages: int  # of a tile
    tokens: int  # of a tile, padding included

    @staticmethod
    def of(sizes: Geometry, tiling: Tiling) -> "_Blocks":
        pages = max(1, tiling.attend_tokens // sizes.page_size)
        tokens = padded(pages * sizes.page_size)
        heads, keys, values, tokens = (
            max(_SMALLEST_DOT, padded(size))
            for size in (sizes.query_heads, sizes.key_dim, sizes.value_dim, tokens)
        )
        return _Blocks(heads, keys, values, pages, tokens)


def part_scratch(sizes: Geometry) -> tuple[Scratch, ...]:
    """What a part leaves for the merge."""
    heads, width = sizes.query_heads, sizes.value_dim
    return (
        Scratch("part_largest", ScratchAxis.PARTS, (heads,), DType.FLOAT32),
        Scratch("part_total", ScratchAxis.PARTS, (heads,), DType.FLOAT32),
        Scratch("part_weighted", ScratchAxis.PARTS, (heads, width), DType.FLOAT32),
    )


def emit_attend_pages(graph: Graph, tiling: Tiling, *, chosen: str | None) -> tuple[Kernel, str]:
    """Online softmax over one part of each list; ``chosen`` if query heads have own pages."""
    sizes = graph.geometry
    blocks = _Blocks.of(sizes, tiling)
    body = Body(page_tokens=None)
    heads, keys, values = sizes.query_heads, sizes.key_dim, sizes.value_dim
    first_pool, *others = _pools(sizes)
    body.need("q_in", f"{sizes.query_dtype} [requests, KV heads, {heads}, {keys}]")
    for name, width in _pools(sizes).items():
        body.need(name, f"{sizes.kv_dtype} [KV heads, blocks, {sizes.page_size}, {width}]")
    start = row_preamble(body, sizes.page_size)
    for name, holds in _ATTEND_ARGUMENTS.items():
        body.need(name, holds)
    if chosen is not None:
        body.need(chosen, f"int8 [rows, max_pages, 1, {heads}]: who chose a page")
    body.need("scale", "factor of logits")
    value_pool, value_width = (others[0], values) if others else (first_pool, keys)
    body.lines += [
        *start[:-1],
        *_query_lines(sizes, blocks, tiling),
        f"for start in range(first, stop, {blocks.pages}):",
        *(f"    {line}" for line in _place_lines(sizes, blocks)),
        *(f"    {line}" for line in _logit_lines(sizes, first_pool, chosen)),
        *(f"    {line}" for line in _softmax_lines(sizes, value_pool, value_width)),
        *_part_lines(sizes),
    ]
    purpose = f"Softmax over at most {tiling.part_pages} listed pages: a program for row and part."
    kernel = Kernel("attend_pages", Grid.ROW_PARTS, tuple(body.arguments))
    return kernel, kernel_text(kernel.name, purpose, body.arguments, body.lines)


_ATTEND_ARGUMENTS = {
    "page_list": "int32 [rows, max_pages]",
    "list_length": "int32 [rows]",
    "block_table": "int64 [requests, max_pages]: where logical pages lie",
    "part_largest": "float32 [rows, parts, query heads]",
    "part_total": "float32 [rows, parts, query heads]",
    "part_weighted": "float32 [rows, parts, query heads, value channels]",
    "num_blocks": "blocks of the pools",
    "max_pages": "pages of the longest row",
    "max_parts": "parts of the longest list",
}


def _pools(sizes: Geometry) -> dict[str, int]:
    if sizes.kind is FlowKind.MLA:
        return {"latent_pool": sizes.key_dim}
    return {"k_pool": sizes.key_dim, "v_pool": sizes.value_dim}


def _query_lines(sizes: Geometry, blocks: _Blocks, tiling: Tiling) -> list[str]:
    heads, keys = sizes.query_heads, sizes.key_dim
    inside = f"(query_head < {heads}) & (key_channel < {keys})"
    return [
        f"first = tl.program_id(1) * {tiling.part_pages}",
        f"stop = tl.minimum(first + {tiling.part_pages}, tl.load(list_length + row))",
        f"query_head = tl.arange(0, {blocks.heads})[:, None]",
        f"key_channel = tl.arange(0, {blocks.keys})[None, :]",
        f"value_channel = tl.arange(0, {blocks.values})[None, :]",
        f"# [{heads}, {keys}], padded",
        f"place = (row * {heads} + query_head) * {keys} + key_channel",
        f"query = tl.load(q_in + place, mask={inside}, other=0).to(tl.float32)",
        f'largest = tl.full(({blocks.heads}, 1), float("-inf"), tl.float32)',
        f"total = tl.zeros(({blocks.heads}, 1), tl.float32)",
        f"weighted = tl.zeros(({blocks.heads}, {blocks.values}), tl.float32)",
        f"token = tl.arange(0, {blocks.tokens})",
    ]


def _place_lines(sizes: Geometry, blocks: _Blocks) -> list[str]:
    """Where the tokens of a tile of listed pages lie, and which of them are there."""
    size = sizes.page_size
    padding = "" if blocks.pages * size == blocks.tokens else f" & (token < {blocks.pages * size})"
    return [
        f"entry = start + token // {size}",
        f"there = (entry < stop){padding}",
        "page = tl.load(page_list + row * max_pages + entry, mask=there, other=0)",
        f"there = there & (page * {size} + token % {size} < num_tokens)",
        "block = tl.load(block_table + request * max_pages + page, mask=there, other=0)",
        f"place = (head * num_blocks + block) * {size} + token % {size}",
    ]


def _logit_lines(sizes: Geometry, pool: str, chosen: str | None) -> list[str]:
    keys, heads = sizes.key_dim, sizes.query_heads
    lines = [
        f"inside = there[:, None] & (key_channel < {keys})",
        f"places = {pool} + place[:, None] * {keys} + key_channel",
        "keys = tl.load(places, mask=inside, other=0)",
        "keys = keys.to(tl.float32)",
        'logits = tl.dot(query, tl.trans(keys), input_precision="ieee") * scale',
    ]
    if chosen is not None:
        lines += [
            f"inside = there[None, :] & (query_head < {heads})",
            f"marks = {chosen} + (row * max_pages + page[None, :]) * {heads} + query_head",
            "mark = tl.load(marks, mask=inside, other=0)",
            'logits = tl.where(mark != 0, logits, float("-inf"))',
        ]
    return [*lines, 'logits = tl.where(there[None, :], logits, float("-inf"))']


def _softmax_lines(sizes: Geometry, pool: str, width: int) -> list[str]:
    """Merge a tile into what the part has so far; no token yet is minus infinity and 0."""
    return [
        "new_largest = tl.maximum(largest, tl.max(logits, 1, keep_dims=True))",
        'shift = tl.where(new_largest == float("-inf"), 0.0, new_largest)',
        "weights = tl.exp(logits - shift)",
        "earlier = tl.exp(largest - shift)",
        f"inside = there[:, None] & (value_channel < {sizes.value_dim})",
        f"places = {pool} + place[:, None] * {width} + value_channel",
        "values = tl.load(places, mask=inside, other=0)",
        "values = values.to(tl.float32)",
        "total = total * earlier + tl.sum(weights, 1, keep_dims=True)",
        'product = tl.dot(weights, values, input_precision="ieee")',
        "weighted = weighted * earlier + product",
        "largest = new_largest",
    ]


def _part_lines(sizes: Geometry) -> list[str]:
    heads, width = sizes.query_heads, sizes.value_dim
    inside = f"(query_head < {heads}) & (value_channel < {width})"
    return [
        f"place = (row * max_parts + tl.program_id(1)) * {heads} + query_head",
        f"tl.store(part_largest + place, largest, mask=query_head < {heads})",
        f"tl.store(part_total + place, total, mask=query_head < {heads})",
        f"tl.store(part_weighted + place * {width} + value_channel, weighted, mask={inside})",
    ]


def emit_merge_parts(graph: Graph, tiling: Tiling) -> tuple[Kernel, str]:
    """Log-sum-exp merge of the parts of each row, in order, through memory."""
    sizes = graph.geometry
    heads, width = sizes.query_heads, sizes.value_dim
    body = Body(page_tokens=None)
    body.need("list_length", "int32 [rows]")
    for name in ("part_largest", "part_total", "part_weighted"):
        body.need(name, _ATTEND_ARGUMENTS[name])
    body.need("output", f"float32 [rows, {heads}, {width}]")
    body.need("log_sum_exp", f"float32 [rows, {heads}]")
    body.need("max_parts", "parts of the longest list")
    body.lines += _merge_lines(heads, width, tiling.part_pages)
    purpose = "The attention of each row from its parts: a program for each row."
    kernel = Kernel("merge_parts", Grid.ROWS, tuple(body.arguments))
    return kernel, kernel_text(kernel.name, purpose, body.arguments, body.lines)


def _merge_lines(heads: int, width: int, part_pages: int) -> list[str]:
    inside = f"(query_head < {heads}) & (value_channel < {width})"
    loop = [
        f"place = (row * max_parts + part) * {heads} + query_head",
        f"other = tl.load(part_largest + place, mask=query_head < {heads}, other=0)",
        "new_largest = tl.maximum(largest, other)",
        'shift = tl.where(new_largest == float("-inf"), 0.0, new_largest)',
        "earlier, later = tl.exp(largest - shift), tl.exp(other - shift)",
        f"other = tl.load(part_total + place, mask=query_head < {heads}, other=0)",
        "total = total * earlier + other * later",
        f"places = part_weighted + place * {width} + value_channel",
        f"weighted = weighted * earlier + tl.load(places, mask={inside}, other=0) * later",
        "largest = new_largest",
    ]
    return [
        "row = tl.program_id(0).to(tl.int64)",
        f"query_head = tl.arange(0, {padded(heads)})[:, None]",
        f"value_channel = tl.arange(0, {padded(width)})[None, :]",
        f'largest = tl.full(({padded(heads)}, 1), float("-inf"), tl.float32)',
        f"total = tl.zeros(({padded(heads)}, 1), tl.float32)",
        f"weighted = tl.zeros(({padded(heads)}, {padded(width)}), tl.float32)",
        f"num_parts = (tl.load(list_length + row) + {part_pages - 1}) // {part_pages}",
        "for part in range(0, num_parts):",
        *(f"    {line}" for line in loop),
        f"place = row * {heads} + query_head",
        "divisor = tl.where(total == 0.0, 1.0, total)",
        f"places = output + place * {width} + value_channel",
        f"tl.store(places, tl.div_rn(weighted, divisor), mask={inside})",
        f"tl.store(log_sum_exp + place, largest + tl.log(total), mask=query_head < {heads})",
    ]
