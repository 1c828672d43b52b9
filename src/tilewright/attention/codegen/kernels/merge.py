"""What becomes of the parts of a row's attention: stored, joined through memory or queues, divided.

Over queues member m sends to the member without its lowest set bit: 1 to 0, 3 to 2, 2 to 0. The
direction up this binary tree is ``parent``; ``child_0``, ``child_1``, ... lead to the members that
send to this one, nearest first. Only a backend whose workers have queues can run such bodies.
"""

from collections.abc import Callable

from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.plan.traffic import NUMBER_BYTES, Stage, Traffic
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.file import Emitted, Grid, StageFunction
from tilewright.attention.codegen.source.row import RowForm, row_start
from tilewright.attention.codegen.source.tree import Source, joined, lines
from tilewright.attention.graph import Geometry

LOWEST = "-3.0e38"
"""The largest logit of no tokens: finite, so that differences to it are numbers."""

_PARTS = {
    "part_largest": "float32 [rows, parts, query heads]",
    "part_total": "float32 [rows, parts, query heads]",
    "part_weighted": "float32 [rows, parts, query heads, value channels]",
}


def head_masks(sizes: Geometry) -> tuple[str, str]:
    """Return the conditions of query heads that are there, and of their channels."""
    heads = f"query_head < {sizes.query_heads}"
    return heads, f"({heads}) & (value_channel < {sizes.value_dim})"


def output_places(form: RowForm, body: Body, output: str, sums: str) -> tuple[str, str]:
    """Take an output of a branch and its log-sum-exp; return where those of the row lie."""
    heads, width = form.sizes.query_heads, form.sizes.value_dim
    output = body.need(f"{output}{form.suffix}", f"float32 [rows, {heads}, {width}]")
    sums = body.need(f"{sums}{form.suffix}", f"float32 [rows, {heads}]")
    places = f"{row_start(body, output)} + query_head * {width} + value_channel"
    return places, f"{row_start(body, sums)} + query_head"


def _part_places(form: RowForm, body: Body, part: str) -> list[str]:
    """Return where the three values of a part lie."""
    names = [body.need(f"{name}{form.suffix}", holds) for name, holds in _PARTS.items()]
    places = [f"{row_start(body, name, part)} + query_head" for name in names]
    return [*places[:2], f"{places[2]} * {form.sizes.value_dim} + value_channel"]


def part_code(form: RowForm, body: Body, part: str) -> Source:
    """Store ``largest``, ``total`` and ``weighted``."""
    places, (heads, channels) = _part_places(form, body, part), head_masks(form.sizes)
    values = {"largest": heads, "total": heads, "weighted": channels}
    stores = zip(places, values.items(), strict=True)
    return joined(f"tl.store({place}, {name}, mask={mask})" for place, (name, mask) in stores)


def finish_code(form: RowForm, body: Body) -> Source:
    """Store the attention of a row from ``largest``, ``total`` and ``weighted``."""
    places, sum_places = output_places(form, body, "output", "log_sum_exp")
    heads, channels = head_masks(form.sizes)
    return lines(f"""
        divisor = tl.where(total == 0.0, 1.0, total)
        tl.store({places}, tl.div_rn(weighted, divisor), mask={channels})
        tl.store({sum_places}, largest + tl.log(total), mask={heads})
    """)


def emit_merge_parts(form: RowForm) -> Emitted:
    """Emit the log-sum-exp merge of the parts of each row, in order, through memory."""
    body = Body()
    largest, total, weighted = _part_places(form, body, "part")
    count = str(form.members)
    if form.target is None:
        length = body.need(f"list_length{form.suffix}", "int32 [rows]")
        pages = form.tiling.part_pages
        count = f"(tl.load({row_start(body, length)}) + {pages - 1}) // {pages}"
    rows, columns = padded(form.sizes.query_heads), padded(form.sizes.value_dim)
    heads, channels = head_masks(form.sizes)
    body.add(f"""
        row = tl.program_id(0).to(tl.int64)
        query_head = tl.arange(0, {rows})[:, None]
        value_channel = tl.arange(0, {columns})[None, :]
        largest = tl.full(({rows}, 1), {LOWEST}, tl.float32)
        total = tl.zeros(({rows}, 1), tl.float32)
        weighted = tl.zeros(({rows}, {columns}), tl.float32)
        num_parts = {count}
        for part in range(0, num_parts):
            other = tl.load({largest}, mask={heads}, other=0)
            new_largest = tl.maximum(largest, other)
            earlier, later = tl.exp(largest - new_largest), tl.exp(other - new_largest)
            other = tl.load({total}, mask={heads}, other=0)
            total = total * earlier + other * later
            places = {weighted}
            weighted = weighted * earlier + tl.load(places, mask={channels}, other=0) * later
            largest = new_largest
        {finish_code(form, body)}
    """)
    purpose = "The attention of each row from its parts: a program for each row."
    part_bytes = form.sizes.query_heads * (form.sizes.value_dim + 2) * NUMBER_BYTES
    traffic = Traffic(Stage.MERGE, row_bytes=2 * form.members * part_bytes)  # written, and read
    return Emitted.of(f"merge_parts{form.suffix}", purpose, body, Grid.ROWS, traffic)


def tree_neighbours(members: int) -> dict[int, dict[str, int]]:
    """Return the directions of each member, and who is there.

    >>> tree_neighbours(4)
    {0: {'child_0': 1, 'child_1': 2}, 1: {'parent': 0}, 2: {'child_0': 3, 'parent': 0}, \
3: {'parent': 2}}
    """
    table: dict[int, dict[str, int]] = {member: {} for member in range(members)}
    for level in range(levels_of(members)):
        for parent in range(0, members, 2 << level):
            if parent + (1 << level) < members:
                table[parent][f"child_{level}"] = parent + (1 << level)
    for member in range(1, members):
        table[member]["parent"] = member & (member - 1)
    return table


def levels_of(members: int) -> int:
    return (members - 1).bit_length()


def level_code(level: int, members: int, *, child: str, parent: str) -> Source:
    """Write what members do at a level that have a parent there, or a child."""
    has_child = f"member % {2 << level} == 0"
    if members != 1 << levels_of(members):
        has_child = f"({has_child}) & (member < {members - (1 << level)})"
    return lines(f"""
        if member % {2 << level} == {1 << level}:
            {child}
        if {has_child}:
            {parent}
    """)


def up_code(members: int, child: str, parent: Callable[[int], str]) -> Source:
    """Send to the parent, and join what comes from the child of each level."""
    levels = range(levels_of(members))
    return joined(level_code(it, members, child=child, parent=parent(it)) for it in levels)


def down_code(members: int, kind: str) -> Source:
    """Send ``last``, of that shape and type, from member 0 to all others."""
    received, levels = f'last = tl.recv("parent", {kind})', reversed(range(levels_of(members)))
    return joined(
        level_code(level, members, child=received, parent=f'tl.send("child_{level}", last)')
        for level in levels
    )


def merge_stage(form: RowForm, channels: int) -> StageFunction:
    """Join ``largest``, ``total`` and ``weighted`` of all members to the row's output."""
    body, heads = form.body(), form.sizes.query_heads
    given = {
        "largest": f"float32 [{heads}, 1]: logits of the member",
        "total": f"float32 [{heads}, 1]: of weights relative to it",
        "weighted": f"float32 [{heads}, {channels}]: values by these weights",
    }
    sent = 'tl.send("parent", tl.join(largest, total)); tl.send("parent", weighted)'

    def join(level: int) -> Source:
        return lines(f"""
            sums = tl.recv("child_{level}", ({heads}, 1, 2), tl.float32)
            other_largest, other_total = tl.split(sums)
            other = tl.recv("child_{level}", ({heads}, {channels}), tl.float32)
            new_largest = tl.maximum(largest, other_largest)
            earlier = tl.exp(largest - new_largest)
            later = tl.exp(other_largest - new_largest)
            total = total * earlier + other_total * later
            weighted = weighted * earlier + other * later
            largest = new_largest
        """)

    body.add(f"""
        {up_code(form.members, sent, join)}
        if member == 0:
            query_head = tl.arange(0, {heads})[:, None]
            value_channel = tl.arange(0, {channels})[None, :]
            {finish_code(form, body)}
    """)
    purpose = "The attention of a row from those of its members, up a tree."
    return StageFunction("merge_members", purpose, body, Stage.MERGE, given)
