"""Kernels as trees: Python's own syntax, each statement with its line as an emitter wrote it.

Emitters write source, which is a tree from then on: `code` checks and takes it apart once. Walks
look at the tree, and `Function.text` alone prints it. Nobody reads printed text.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from textwrap import dedent, indent

from tilewright.errors import InternalError

_EFFECTS = frozenset({"tl.store", "tl.send", "tl.recv"})


@dataclass(frozen=True, slots=True)
class Statement:
    """An assignment, a call for its effect, a return, or the head of a loop or of a condition.

    ``remark`` stands on a line ahead of it. ``nodes`` are those of the statement itself, without
    those under it.
    """

    syntax: ast.stmt = field(compare=False, repr=False)
    line: str
    body: tuple["Statement", ...] = ()
    otherwise: tuple["Statement", ...] = ()
    remark: str = ""
    nodes: tuple[ast.AST, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        own: list[ast.AST] = [self.syntax]
        if isinstance(self.syntax, ast.For):
            own = [self.syntax.target, self.syntax.iter]
        elif isinstance(self.syntax, ast.If):
            own = [self.syntax.test]
        nodes = tuple(node for part in own for node in ast.walk(part))
        object.__setattr__(self, "nodes", nodes)

    def text(self) -> str:
        """Print the statement with all under it."""
        lines = [f"# {self.remark}"] if self.remark else []
        lines += [self.line, *(indent(item.text(), "    ") for item in self.body)]
        if self.otherwise:
            lines += ["else:", *(indent(item.text(), "    ") for item in self.otherwise)]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Function:
    """A jitted function; ``arguments`` say what each of them holds."""

    name: str
    purpose: str
    arguments: Mapping[str, str]
    body: Sequence[Statement]

    def text(self) -> str:
        """Print the source; each argument stands on a line of its own with what it holds."""
        listed = [
            f"    {item},  # {holds}" if holds else f"    {item},"
            for item, holds in self.arguments.items()
        ]
        head = ["@triton.jit", f"def {self.name}(", *listed, "):", f'    """{self.purpose}"""']
        return "\n".join([*head, *(indent(item.text(), "    ") for item in self.body), ""])


class Source(str):
    """Lines of a kernel that other lines may have in their midst: see `lines`."""

    __slots__ = ()

    def __format__(self, _spec: str) -> str:
        return self.replace("\n", "\0")


def lines(text: str) -> Source:
    """Write lines of a kernel; lines that stand in them are indented like the place they have.

    >>> turn = lines("total += tl.load(x + k); count += 1\\ntl.store(y + k, count)")
    >>> print(lines(f"for k in range(0, n):\\n    {turn}"))
    for k in range(0, n):
        total += tl.load(x + k); count += 1
        tl.store(y + k, count)
    """
    unfolded = [
        line.replace("\0", "\n" + line[: len(line) - len(line.lstrip())])
        for line in dedent(text).strip("\n").split("\n")
    ]
    return Source("\n".join(unfolded))


def joined(parts: Iterable[str]) -> Source:
    """Put lines one after the other."""
    return Source("\n".join(parts))


def code(source: str, *parts: Iterable[Statement], remark: str = "") -> list[Statement]:
    """Take source apart into statements; a remark is about the first of them.

    A line ``...`` stands for the next of the parts, statements that are there already.

    >>> [loop] = code("for k in range(0, n):\\n    ...", code("total += tl.load(x + k)"))
    >>> print(loop.text())
    for k in range(0, n):
        total += tl.load(x + k)
    >>> assigned(loop.body), sorted(used(loop.body)), next(called(loop.body))[0]
    ({'total'}, ['k', 'tl', 'total', 'x'], 'tl.load')
    """
    text, waiting = lines(source), iter(parts)
    found = list(_taken_apart(text, waiting) if parts else _of_text(text))
    if next(waiting, None) is not None:
        raise _refused(text, "a line ... for each part")
    if remark:
        found[0] = replace(found[0], remark=remark)
    return found


@lru_cache(maxsize=4096)
def _of_text(text: str) -> tuple[Statement, ...]:
    """Take apart what has no parts: the same lines stand in many kernels."""
    return tuple(_taken_apart(text, iter(())))


def _taken_apart(text: str, parts: Iterator[Iterable[Statement]]) -> Iterator[Statement]:
    written = [line.encode() for line in text.split("\n")]  # syntax counts bytes
    lost = next((line for line in written if line.lstrip().startswith(b"#")), b"")
    if lost:
        raise _refused(lost.decode(), "remarks beside the source")
    yield from _statements(ast.parse(text).body, written, parts)


def _statements(
    nodes: Iterable[ast.stmt], written: Sequence[bytes], parts: Iterator[Iterable[Statement]]
) -> Iterator[Statement]:
    """Yield statements of the kinds that kernels have; others are a mistake of an emitter."""
    for node in nodes:
        line = written[node.lineno - 1]
        match node:
            case ast.Expr(value=ast.Constant(value=value)) if value is ...:
                part = next(parts, None)
                if part is None:
                    raise _refused(line.decode(), "a line ... for each part")
                yield from part
            case ast.For(target=ast.Name(), iter=ast.Call()) | ast.If():
                if not line.rstrip().endswith(b":"):
                    raise _refused(line.decode(), "a head on a line of its own")
                inside = tuple(_statements(node.body, written, parts))
                final = tuple(_statements(node.orelse, written, parts))
                yield Statement(node, line.decode().strip(), inside, final)
            case (
                ast.Assign(targets=[ast.Name() | ast.Tuple()])
                | ast.AugAssign(target=ast.Name(), op=ast.Add())
                | ast.Expr(value=ast.Call())
                | ast.Return()
            ):
                if node.end_lineno != node.lineno:
                    raise _refused(ast.unparse(node), "a statement on one line")
                note = line[node.end_col_offset :].partition(b"# ")[2]
                own = line[node.col_offset : node.end_col_offset]
                yield Statement(node, (own + (b"  # " + note if note else b"")).decode())
            case _:
                raise _refused(ast.unparse(node), "a statement of a kernel")


def _refused(found: str, expected: str) -> InternalError:
    return InternalError("kernel", found, expected, "report it")


def assigned(statements: Iterable[Statement]) -> set[str]:
    """Return the variables that statements set."""
    return {
        node.id
        for syntax, node in _nodes(statements)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        if isinstance(syntax, ast.Assign | ast.AugAssign)
    }


def used(statements: Iterable[Statement]) -> set[str]:
    """Return the names that statements read; what one adds to it reads, too."""
    return {
        node.id
        for syntax, node in _nodes(statements)
        if isinstance(node, ast.Name)
        if isinstance(node.ctx, ast.Load) or not isinstance(syntax, ast.Assign)
    }


def called(statements: Iterable[Statement]) -> Iterator[tuple[str, ast.Call]]:
    """Yield all calls in statements by name, those of functions of a module with its name."""
    for _, node in _nodes(statements):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                yield name, node
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
                yield f"{module}.{name}", node


def _nodes(statements: Iterable[Statement]) -> Iterator[tuple[ast.stmt, ast.AST]]:
    """Yield all nodes of statements and of those under them, with the statement of each."""
    for item in statements:
        yield from ((item.syntax, node) for node in item.nodes)
        yield from _nodes((*item.body, *item.otherwise))


def split_loop(
    statements: Iterable[Statement], varying: Iterable[str]
) -> tuple[list[Statement], list[Statement]]:
    """Split what does not depend on the varying names from what does. Order is kept in both.

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

    >>> sorted(assigned(without_unused(code("a = 1; b = a; c = a; tl.store(out, c)"))))
    ['a', 'c']
    """
    needed = set(wanted)
    kept: list[Statement] = []
    for statement in reversed(statements):
        targets = assigned([statement])
        has_effect = not targets or any(name in _EFFECTS for name, _ in called([statement]))
        if has_effect or targets & needed:
            needed |= used([statement])
            kept.append(statement)
    return kept[::-1]
