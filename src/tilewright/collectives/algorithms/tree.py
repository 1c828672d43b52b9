"""Two binary trees: a rank inside one of them is a leaf of the other, so all of them send alike."""

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.collectives.algorithm import Algorithm
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Plan, Script


@dataclass(frozen=True, slots=True)
class _Node:
    rank: int
    children: tuple["_Node", ...]

    @property
    def height(self) -> int:
        return max((1 + child.height for child in self.children), default=0)

    def edges(self, depth: int = 0) -> Iterator[tuple[int, int, int]]:
        """A parent, its child, and how deep the parent is."""
        for child in self.children:
            yield self.rank, child.rank, depth
            yield from child.edges(depth + 1)


def plan_double_tree(call: Call, lane: int) -> Plan:
    """Each tree has half of the blocks; every second pair of lanes changes the halves."""
    ranks = call.num_ranks
    script = Script(ranks, 2 * ranks)
    for number in range(2):
        blocks = range((number + lane // 2) % 2, 2 * ranks, 2)
        tree = _rooted(call, shift=number)
        for block in blocks:  # each goes to both children before the next
            _write(script, call, tree, block)
    return script.plan()


def _write(script: Script, call: Call, tree: _Node, block: int) -> None:
    height = tree.height
    for parent, child, depth in tree.edges():
        if call.operation is not Operation.BROADCAST:
            script.move(height - 1 - depth, child, parent, [block], combines=True)
        if call.operation is not Operation.REDUCE:
            script.move(height + depth, parent, child, [block], combines=False)


def _rooted(call: Call, *, shift: int) -> _Node:
    """A root that the call names is above the tree of all others."""
    ranks = list(range(call.num_ranks))
    if call.operation is Operation.ALL_REDUCE:
        return _tree(ranks[shift:] + ranks[:shift])
    others = [(call.root + place) % call.num_ranks for place in range(1, call.num_ranks)]
    shift %= len(others)
    return _Node(call.root, (_tree(others[shift:] + others[:shift]),))


def _tree(ranks: list[int]) -> _Node:
    """In order, every second rank a leaf."""
    middle = len(ranks) // 2
    if middle % 2 == 0 and middle + 1 < len(ranks):
        middle += 1
    sides = (ranks[:middle], ranks[middle + 1 :])
    return _Node(ranks[middle], tuple(_tree(side) for side in sides if side))


_OPERATIONS = frozenset((Operation.ALL_REDUCE, Operation.BROADCAST, Operation.REDUCE))
ALGORITHMS = (Algorithm("double_tree", _OPERATIONS, plan_double_tree, preference=2),)
