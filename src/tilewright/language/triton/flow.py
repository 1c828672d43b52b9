"""What a function's text says of its variables and returns: which names, in which order."""

import ast
from collections.abc import Iterator, Sequence

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all inside it, but not what is inside of other functions."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _FUNCTIONS):
            yield from _walk(child)


def returns_of(body: Sequence[ast.stmt]) -> Iterator[ast.Return]:
    """The returns of a function, in the order of its text."""
    for statement in body:
        if not isinstance(statement, _FUNCTIONS):
            yield from (each for each in _walk(statement) if isinstance(each, ast.Return))


def contains_return(statement: ast.stmt) -> bool:
    """Whether a statement may end the function."""
    return any(returns_of([statement]))


def is_followed(wanted: ast.Return, body: Sequence[ast.stmt]) -> bool:
    """Whether another return comes behind one, other than in the other branch of an ``if``.

    Triton reads on behind an ``if`` even where the branch that it takes returns.
    """
    for place, statement in enumerate(body):
        if wanted is statement:
            return False  # what follows it in its own block is never read
        if wanted not in returns_of([statement]):
            continue
        if any(returns_of(body[place + 1 :])):
            return True
        branches = [getattr(statement, name, []) for name in ("body", "orelse")]
        return any(is_followed(wanted, branch) for branch in branches if branch)
    return False


def is_constexpr(annotation: ast.expr) -> bool:
    """Whether an annotation is ``tl.constexpr``."""
    match annotation:
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.Constant(value=str(name)):
            return name.rpartition(".")[2] == "constexpr"
    return False


def strong_names(body: Sequence[ast.stmt]) -> set[str]:
    """Variables that hold no constant: assigned, and never declared to be one."""
    declared = {
        name
        for statement in body
        for node in _walk(statement)
        if isinstance(node, ast.AnnAssign) and is_constexpr(node.annotation)
        for name in _names(node.target)
    }
    return assigned_names(body) - declared


def assigned_names(body: Sequence[ast.stmt]) -> set[str]:
    """Names that statements assign to, the indices of inner loops aside."""
    names: set[str] = set()
    for statement in body:
        for node in _walk(statement):
            match node:
                case ast.Assign(targets=targets):
                    names.update(*map(_names, targets))
                case ast.AugAssign(target=target) | ast.NamedExpr(target=target):
                    names |= _names(target)
                case ast.AnnAssign(target=target, value=ast.expr()):
                    names |= _names(target)
    return names


def bound_names(statement: ast.stmt) -> set[str]:
    """Names that hold something once a statement has run, whichever way it went."""
    match statement:
        case ast.If(body=body, orelse=orelse):
            return _all_bound(body) & _all_bound(orelse)
        case ast.For() | ast.While() | ast.FunctionDef():
            return set()
    return assigned_names([statement])


def _all_bound(body: Sequence[ast.stmt]) -> set[str]:
    return set().union(*map(bound_names, body))


def _names(target: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
