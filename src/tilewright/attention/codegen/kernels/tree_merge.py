"""Members of a row that join their parts over queues, up a binary tree and down again.

Member m sends to the member without its lowest set bit: 1 to 0, 3 to 2, 2 to 0. The direction up is
``parent``; ``child_0``, ``child_1``, ... lead to the members that send to this one, nearest first.
Only a backend whose workers have queues can run these bodies.
"""

from collections.abc import Callable

from tilewright.attention.codegen.kernels.merge import finish_code
from tilewright.attention.codegen.plan.traffic import Stage
from tilewright.attention.codegen.source.row import RowForm
from tilewright.attention.codegen.source.stage import StageFunction
from tilewright.attention.codegen.source.tree import Source, joined, lines


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
    found = (level_code(level, members, child=child, parent=parent(level)) for level in levels)
    return joined(found)


def down_code(members: int, kind: str) -> Source:
    """Send ``last``, of that shape and type, from member 0 to all others."""
    received = f'last = tl.recv("parent", {kind})'
    found = [
        level_code(level, members, child=received, parent=f'tl.send("child_{level}", last)')
        for level in reversed(range(levels_of(members)))
    ]
    return joined(found)


def merge_stage(form: RowForm, channels: int) -> StageFunction:
    """Join ``largest``, ``total`` and ``weighted`` of all members to the row's output."""
    body, heads = form.body(), form.sizes.query_heads
    given = {
        "largest": f"float32 [{heads}, 1]: logits of the member",
        "total": f"float32 [{heads}, 1]: of weights relative to it",
        "weighted": f"float32 [{heads}, {channels}]: values by these weights",
    }
    sent = lines("""
        tl.send("parent", tl.join(largest, total))
        tl.send("parent", weighted)
    """)

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
