"""Which statements of a kernel are needed, and which of them depend on the tile of a loop."""

from collections.abc import Iterable, Sequence

from tilewright.attention.codegen.source.tree import Assign, Loop, Statement

_EFFECTS = frozenset({"tl.store", "tl.send", "tl.recv"})


def assigned(statements: Iterable[Statement]) -> set[str]:
    """Return the variables that statements set."""
    return {
        name
        for statement in statements
        for item in statement.walk()
        if isinstance(item, Assign)
        for name in item.targets
    }


def used(statements: Iterable[Statement]) -> set[str]:
    """Return the names that statements read; what one adds to it reads, too."""
    names: set[str] = set()
    for statement in statements:
        for item in statement.walk():
            names.update(*(expression.names for expression in item.expressions()))
            if isinstance(item, Assign) and item.operator:
                names.update(item.targets)
            elif isinstance(item, Loop):
                names.add(item.index)
    return names


def split_loop(
    statements: Sequence[Statement], varying: Iterable[str]
) -> tuple[list[Statement], list[Statement]]:
    """Split what does not depend on the varying names from what does. Order is kept in both.

    >>> from tilewright.attention.codegen.source.tree import code
    >>> ahead, inside = split_loop(code("a = q + 1; b = page + a; tl.store(out, b)"), ["page"])
    >>> assigned(ahead), assigned(inside)
    ({'a'}, {'b'})
    """
    depends = set(varying)
    ahead: list[Statement] = []
    inside: list[Statement] = []
    for statement in statements:
        targets = assigned([statement])
        if depends & (used([statement]) | targets):
            depends |= targets
            inside.append(statement)
        else:
            ahead.append(statement)
    return ahead, inside


def without_unused(statements: Sequence[Statement], wanted: Iterable[str] = ()) -> list[Statement]:
    """Leave out assignments that no store, no message and none of the wanted names needs.

    >>> from tilewright.attention.codegen.source.tree import code
    >>> sorted(assigned(without_unused(code("a = 1; b = a; c = a; tl.store(out, c)"))))
    ['a', 'c']
    """
    needed = set(wanted)
    kept: list[Statement] = []
    for statement in reversed(statements):
        targets = assigned([statement])
        has_effect = not targets or any(name in _EFFECTS for name, _ in statement.calls())
        if has_effect or targets & needed:
            needed |= used([statement])
            kept.append(statement)
    return kept[::-1]
