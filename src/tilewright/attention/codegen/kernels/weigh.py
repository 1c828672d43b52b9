"""The kernel that tells the next step how much of the attention each page got."""

from collections.abc import Sequence
from typing import NamedTuple

from tilewright.attention.codegen.expression.memory import array_place, mass_memory, zero_of
from tilewright.attention.codegen.kernels.compute import VARYING, PageWork, page_kernel
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.plan.traffic import (
    NUMBER_BYTES,
    TABLE_BYTES,
    Stage,
    Traffic,
    pools_of,
)
from tilewright.attention.codegen.source.builder import Body, load_source, store_source
from tilewright.attention.codegen.source.file import Emitted
from tilewright.attention.codegen.source.row import RowForm, row_start
from tilewright.attention.codegen.source.tree import Source, joined, lines, split_loop


class Weighed(NamedTuple):
    """A branch that read pages: its marks with their columns, and its log-sum-exp."""

    marks: str
    columns: int
    log_sum_exp: str


def emit_weigh_pages(form: RowForm, branches: Sequence[Weighed]) -> Emitted:
    """Emit the sum of the masses of branches. Keys of pages that were read are read once more."""
    sizes = form.sizes
    body = Body("page_tokens", sizes.page_size, sizes.query_heads)
    form.preamble(body)
    heads = sizes.query_heads
    body.index(2, heads)
    reads = joined(_read_code(item, place, body) for place, item in enumerate(branches))
    logits = _logit_code(form, len(branches), body)
    terms = [_term(item, place, body) for place, item in enumerate(branches)]
    memory, content = mass_memory("next"), f"float32 [rows, pages, {heads}]"
    masses, there = array_place(memory, content, (1, heads), body, per_page=True)
    body.need_all("reads_all", "first_reserved", "last_reserved")
    ends = "(page < first_reserved) | (page >= num_pages - last_reserved)"
    body.add(f"""
        always = (({ends}).to(tl.int8) | tl.load(reads_all + row)) != 0
        {reads}
        {logits}
        mass = {" + ".join(terms)}
        {store_source(masses, "mass", there)}
    """)
    elements = padded(sizes.page_size) * padded(heads) * padded(sizes.key_dim)
    ahead, inside = split_loop(body.statements, VARYING)
    # marks and block numbers of all pages, keys of those that were read, and masses
    query = heads * sizes.key_dim * sizes.query_dtype.bits // 8
    keys = sizes.page_size * sizes.key_dim * sizes.kv_dtype.bits // 8
    per_page = sum(item.columns for item in branches) + TABLE_BYTES + NUMBER_BYTES * heads
    traffic = Traffic(Stage.ATTENTION, query, per_page, keys)
    work = PageWork(body, ahead, inside, form.tiling.pages_for(elements), traffic)
    return page_kernel("weigh_pages", "Attention of each page", form, work)


def _read_code(branch: Weighed, place: int, body: Body) -> Source:
    """Set ``read_0``, whether query heads of a branch read a page, and whether some does."""
    shape, content = (1, branch.columns), f"int8 [rows, pages, 1, {branch.columns}]"
    marks = load_source(*array_place(branch.marks, content, shape, body, per_page=True))
    some = f"read_{place}"
    if branch.columns > 1:
        some = f"(tl.max(read_{place}.to(tl.int32), 2, keep_dims=True) != 0)"
    return lines(f"""
        read_{place} = always | ({marks} != 0)
        some_{place} = {some}
    """)


def _logit_code(form: RowForm, branches: int, body: Body) -> Source:
    """Compute logits [pages, tokens, query heads] of the pages that some branch read."""
    sizes = form.sizes
    heads, width, size = sizes.query_heads, sizes.key_dim, sizes.page_size
    pool = next(iter(pools_of(sizes)))
    body.need("q_in", f"{sizes.query_dtype} [requests, KV heads, {heads}, {width}]")
    body.need(pool, f"{sizes.kv_dtype} [KV heads, blocks, {size}, {width}]")
    body.need_all("num_blocks", "scale")
    form.table(body)
    query = body.place(row_start(body, "q_in"), "", (heads, width), (heads, width))
    keys = body.place(pool, "(head * num_blocks + block)", (size, width), (size, width))
    asked = load_source(query, body.inside((heads, width)))
    token = body.index(1, size)
    read = " | ".join(f"some_{place}" for place in range(branches))
    there = [f"({read})", f"({token} < page_tokens)", *body.inside((size, width))[-1:]]
    return lines(f"""
        query = {asked}.to(tl.float32)
        keys = {load_source(keys, there, zero_of(sizes.kv_dtype))}.to(tl.float32)
        logits = tl.sum(keys[:, :, None, :] * query[:, None, :, :], 3) * scale
    """)


def _term(branch: Weighed, place: int, body: Body) -> str:
    """Return the mass of a branch: [pages, 1, query heads], 0 for a page that it did not read."""
    heads, size = body.query_heads, body.page_size
    name, content = branch.log_sum_exp, f"float32 [rows, {heads}]"
    loaded = load_source(*array_place(name, content, (1, heads), body, per_page=False))
    there = f"read_{place} & ({body.index(1, size)} < page_tokens)"
    if place:  # attention of a dense row is that of one branch
        there = f"(tl.load(reads_all + row) == 0) & {there}"
    weight = f"tl.where({there}, tl.exp(logits - {loaded}), 0.0)"
    return f"tl.sum({weight}, 1, keep_dims=True)"
