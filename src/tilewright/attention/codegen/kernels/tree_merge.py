"""Members of a row that join their parts over queues, up a binary tree and down again.

Member m sends to the member without its lowest set bit: 1 to 0, 3 to 2, 2 to 0. The direction up is
``parent``; ``child_0``, ``child_1``, ... lead to the members that send to this one, nearest first.
Only a backend whose workers have queues can run these bodies.
"""

from tilewright.attention.codegen.kernels.merge import finish_code
from tilewright.attention.codegen.kernels.select_block import LEAST_KEY, count_code
from tilewright.attention.codegen.plan.target import Deal, padded
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.row import RowForm, row_start, span_code
from tilewright.attention.codegen.source.tree import If, Statement, code
from tilewright.attention.graph import Node, Span


def tree_neighbours(members: int) -> dict[int, dict[str, int]]:
    """Return the directions of each member, and who is there.

    >>> tree_neighbours(4)
    {0: {'child_0': 1, 'child_1': 2}, 1: {'parent': 0}, 2: {'child_0': 3, 'parent': 0}, \
3: {'parent': 2}}
    """
    table: dict[int, dict[str, int]] = {member: {} for member in range(members)}
    for level in range(_levels(members)):
        for parent in range(0, members, 2 << level):
            if parent + (1 << level) < members:
                table[parent][f"child_{level}"] = parent + (1 << level)
    for member in range(1, members):
        table[member]["parent"] = member & (member - 1)
    return table


def _levels(members: int) -> int:
    return (members - 1).bit_length()


def _has_child(level: int, members: int) -> str:
    """Return the condition that the member hears from another one at a level."""
    there = f"member % {2 << level} == 0"
    if members == 1 << _levels(members):
        return there
    return f"({there}) & (member < {members - (1 << level)})"


def _sends(level: int) -> str:
    return f"member % {2 << level} == {1 << level}"


def select_tree_code(
    node: Node, form: RowForm, body: Body, *, scores: str, pages: int, chosen: str
) -> list[Statement]:
    """Mark the pages that all members together choose by the scores of each.

    All keys meet at member 0, which finds the last one that is in, and how many of its equals each
    member has.
    """
    span = span_code(Span.MIDDLE, body)
    body.need(chosen, "int8 [rows, members, pages, 1, 1]")
    marks = row_start(body, chosen, form.part)
    seats = padded(form.members)
    start = code(f"""
        own = tl.arange(0, {pages})
        page = {form.page_of("own")}
        candidate = (page >= first) & (page < stop) & (own < {form.num_own})
        own_keys = tl.where(candidate, signed_key({scores}), {LEAST_KEY})
        keys = own_keys
    """)
    return [
        *span,
        *start,
        *_gather_code(form.members, pages),
        *code(f"last = tl.zeros((2, {seats}), tl.int32)"),
        If.of("member == 0", _decide_code(node, form, body, pages)),
        *_down_code(form.members, f"(2, {seats}), tl.int32"),
        *_own_share_code(seats),
        *code(f"tl.store({marks} + own, mark, mask=own < {form.num_own})"),
    ]


def _gather_code(members: int, pages: int) -> list[Statement]:
    """Gather the keys of all members at member 0, those of a member together."""
    lines = []
    for level in range(_levels(members)):
        size = pages << level
        lines += code(f"""
            if {_sends(level)}:
                tl.send("parent", keys)
            if {_has_child(level, members)}:
                keys = tl.cat(keys, tl.recv("child_{level}", ({size},), tl.int32))
        """)
        if members != 1 << _levels(members):  # a seat that nobody has
            lines += code(f"""
                if (member % {2 << level} == 0) & (member >= {members - (1 << level)}):
                    keys = tl.cat(keys, tl.full(({size},), {LEAST_KEY}, tl.int32))
            """)
    return lines


def _decide_code(node: Node, form: RowForm, body: Body, pages: int) -> list[Statement]:
    """Find at member 0 the last key that is in, and what each member may take of its equals."""
    seats = padded(form.members)
    equal, shares = "equal", f"tl.reshape(taken, ({seats}, {pages}))"
    if form.deal is Deal.DEALT:
        equal = f"tl.trans(tl.reshape(equal, ({seats}, {pages})))"
        shares = f"tl.trans(tl.reshape(taken, ({pages}, {seats})))"
    return count_code(node, body) + code(f"""
        limit = last_key_of(keys, count, {seats * pages})
        owed = count - tl.sum((keys > limit).to(tl.int32), 0)
        equal = (keys == limit).to(tl.int32)
        equal = tl.reshape({equal}, ({seats * pages},))  # by page
        taken = equal * (tl.cumsum(equal, 0) <= owed).to(tl.int32)
        shares = tl.sum({shares}, 1)
        side = tl.arange(0, 2)[:, None]
        last = tl.where(side == 0, limit, shares[None, :])
    """)


def _down_code(members: int, kind: str) -> list[Statement]:
    """Send ``last``, of that shape and type, from member 0 to all others."""
    lines = []
    for level in reversed(range(_levels(members))):
        lines += code(f"""
            if {_sends(level)}:
                last = tl.recv("parent", {kind})
            if {_has_child(level, members)}:
                tl.send("child_{level}", last)
        """)
    return lines


def _own_share_code(seats: int) -> list[Statement]:
    return code(f"""
        side = tl.arange(0, 2)[:, None]
        seat = tl.arange(0, {seats})[None, :]
        limit = tl.sum(tl.sum(tl.where((side == 0) & (seat == 0), last, 0), 1), 0)
        share = tl.sum(tl.sum(tl.where((side == 1) & (seat == member), last, 0), 1), 0)
        equal = own_keys == limit
        best = (own_keys > limit) | (equal & (tl.cumsum(equal.to(tl.int32), 0) <= share))
        mark = ((best & candidate) | (candidate == 0)).to(tl.int8)
    """)


def best_up_code(members: int, kept: int) -> list[Statement]:
    """Send the best ranks of all members up to member 0."""
    lines = []
    for level in range(_levels(members)):
        received = f'tl.recv("child_{level}", ({kept},), tl.int64)'
        lines += code(f"""
            if {_sends(level)}:
                tl.send("parent", best)
            if {_has_child(level, members)}:
                best = best_of_both(best, {received}, {kept})
        """)
    return lines


def best_down_code(members: int) -> list[Statement]:
    """Send the lowest rank that is in from member 0 to all others."""
    return _down_code(members, "(1,), tl.int64")


def merge_tree_code(form: RowForm, body: Body, *, channels: int) -> list[Statement]:
    """Join ``largest``, ``total`` and ``weighted`` of all members to the row's output."""
    heads = form.sizes.query_heads
    lines: list[Statement] = []
    for level in range(_levels(form.members)):
        lines += code(f"""
            if {_sends(level)}:
                tl.send("parent", tl.join(largest, total))
                tl.send("parent", weighted)
            if {_has_child(level, form.members)}:
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
    ending = code(f"""
        query_head = tl.arange(0, {heads})[:, None]
        value_channel = tl.arange(0, {channels})[None, :]
    """)
    return [*lines, If.of("member == 0", [*ending, *finish_code(form, body)])]
