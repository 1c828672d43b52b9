"""Kernels as trees: statements of five kinds over expressions that are Python's own.

Emitters write source, which is a tree from then on: `code` checks and takes it apart once. Walks
look at the tree, and `Function.text` alone prints it. Nobody reads printed text.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import dedent

from tilewright.errors import InternalError


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression as it is printed, and what its syntax says.

    ``names`` are the variables that it reads and the functions that it calls; ``calls`` are calls
    of functions, and of those of a module, by name.
    """

    source: str
    syntax: ast.expr = field(compare=False, repr=False)
    names: frozenset[str] = field(init=False, compare=False, repr=False)
    calls: tuple[tuple[str, ast.Call], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        nodes = list(ast.walk(self.syntax))
        names = (node.id for node in nodes if isinstance(node, ast.Name))
        calls = (node for node in nodes if isinstance(node, ast.Call))
        object.__setattr__(self, "names", frozenset(names))
        object.__setattr__(self, "calls", tuple((_dotted(call.func), call) for call in calls))

    @staticmethod
    def of(source: str) -> "Expression":
        return Expression(source, ast.parse(source, mode="eval").body)

    def whole_number(self) -> int | None:
        """Return its value, if it is a literal."""
        try:
            return int(ast.literal_eval(self.syntax))
        except ValueError:
            return None


def _dotted(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return f"{module}.{name}"
    return ""


@dataclass(frozen=True, slots=True)
class Statement:
    """What all kinds have: a remark on lines of its own, and a note at the end of the line."""

    remark: str = field(default="", kw_only=True)
    note: str = field(default="", kw_only=True)

    def expressions(self) -> tuple[Expression, ...]:
        """Return the expressions of the statement itself."""
        match self:
            case Assign(value=value) | Do(value=value) | Return(value=value) | If(condition=value):
                return (value,)
            case Loop(bounds=bounds):
                return bounds
        raise InternalError("kernel", repr(self), "a kind of statement", "report it")

    def inner(self) -> tuple["Statement", ...]:
        """Return the statements under it."""
        match self:
            case Loop(body=body):
                return body
            case If(body=body, otherwise=otherwise):
                return (*body, *otherwise)
        return ()

    def walk(self) -> Iterator["Statement"]:
        """Yield the statement and all under it, as they are printed."""
        yield self
        for statement in self.inner():
            yield from statement.walk()

    def calls(self) -> Iterator[tuple[str, ast.Call]]:
        """Yield all calls in it by name."""
        for statement in self.walk():
            for expression in statement.expressions():
                yield from expression.calls


@dataclass(frozen=True, slots=True)
class Assign(Statement):
    """``x = value``, ``x, y = value``, or ``x += value`` with the operator ``+``."""

    targets: tuple[str, ...]
    value: Expression
    operator: str = ""


@dataclass(frozen=True, slots=True)
class Do(Statement):
    """A call for what it does: a store, a message, a barrier, a helper that stores."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Return(Statement):
    """The end of a function that leaves something."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Loop(Statement):
    """``for index in range(...)``."""

    index: str
    bounds: tuple[Expression, ...]
    body: tuple[Statement, ...]

    @staticmethod
    def over(index: str, first: str, stop: str, step: int, body: Iterable[Statement]) -> "Loop":
        bounds = tuple(Expression.of(bound) for bound in (first, stop, str(step)))
        return Loop(index, bounds, tuple(body))


@dataclass(frozen=True, slots=True)
class If(Statement):
    """A choice of the program; what may differ from element to element is no statement."""

    condition: Expression
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()

    @staticmethod
    def of(condition: str, body: Iterable[Statement], otherwise: Iterable[Statement] = ()) -> "If":
        return If(Expression.of(condition), tuple(body), tuple(otherwise))


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
        return "\n".join([*head, *_indented(self.body), ""])


def _indented(statements: Iterable[Statement]) -> list[str]:
    return [f"    {line}" for statement in statements for line in _printed(statement)]


def _printed(statement: Statement) -> list[str]:
    remark = [f"# {statement.remark}"] if statement.remark else []
    first, *others = _lines(statement)
    note = f"  # {statement.note}" if statement.note else ""
    return [*remark, first + note, *others]


def _lines(statement: Statement) -> list[str]:
    """Print the statement without remark and note."""
    source = ", ".join(expression.source for expression in statement.expressions())
    match statement:
        case Assign(targets=targets, operator=operator):
            return [f"{', '.join(targets)} {operator}= {source}"]
        case Return():
            return [f"return {source}"]
        case Loop(index=index, body=body):
            return [f"for {index} in range({source}):", *_indented(body)]
        case If(body=body, otherwise=otherwise):
            final = ["else:", *_indented(otherwise)] if otherwise else []
            return [f"if {source}:", *_indented(body), *final]
    return [source]


def code(source: str, remark: str = "") -> list[Statement]:
    """Take source apart into statements; a remark is about the first of them.

    >>> [loop] = code("for k in range(0, n):\\n    total += tl.load(x + k)")
    >>> loop.index, loop.inner()[0].targets, sorted(loop.bounds[1].names)
    ('k', ('total',), ['n'])
    """
    text = dedent(source).strip("\n")
    lines = [line.encode() for line in text.split("\n")]  # syntax counts bytes
    lost = next((line for line in lines if line.lstrip().startswith(b"#")), b"")
    if lost:
        raise _refused(lost.decode(), "remarks beside the source")
    found = [_statement(node, lines) for node in ast.parse(text).body]
    if remark:
        found[0] = replace(found[0], remark=remark)
    return found


def _statement(node: ast.stmt, lines: Sequence[bytes]) -> Statement:
    """Build one of the kinds that kernels have; anything else is a mistake of an emitter."""
    match node:
        case ast.For(target=ast.Name(id=index), iter=ast.Call(args=bounds), body=body):
            _check_head(node, lines)
            inside = tuple(_statement(item, lines) for item in body)
            return Loop(index, tuple(_expression(item, lines) for item in bounds), inside)
        case ast.If(test=test, body=body, orelse=otherwise):
            _check_head(node, lines)
            then, other = (
                tuple(_statement(item, lines) for item in part) for part in (body, otherwise)
            )
            return If(_expression(test, lines), then, other)
    if node.end_lineno != node.lineno:
        raise _refused(ast.unparse(node), "a statement on one line")
    line = lines[node.lineno - 1]
    note = line[node.end_col_offset :].decode().partition("# ")[2]
    match node:
        case ast.Assign(targets=[ast.Name() | ast.Tuple() as target], value=value):
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            targets = tuple(_source(name, lines) for name in names)
            operator = ""
        case ast.AugAssign(target=ast.Name(id=name) as target, op=ast.Add(), value=value):
            targets, operator = (name,), "+"
        case ast.Expr(value=value):
            return Do(_expression(value, lines), note=note)
        case _:
            raise _refused(ast.unparse(node), "a statement of a kernel")
    # what stands behind the target: parentheses around all of it are not in its syntax
    source = line[target.end_col_offset : node.end_col_offset].decode().lstrip(" +=")
    return Assign(targets, Expression(source, value), operator, note=note)


def _check_head(node: ast.stmt, lines: Sequence[bytes]) -> None:
    if not lines[node.lineno - 1].rstrip().endswith(b":"):
        raise _refused(lines[node.lineno - 1].decode(), "a head on a line of its own")


def _refused(found: str, expected: str) -> InternalError:
    return InternalError("kernel", found, expected, "report it")


def _expression(node: ast.expr, lines: Sequence[bytes]) -> Expression:
    return Expression(_source(node, lines), node)


def _source(node: ast.expr, lines: Sequence[bytes]) -> str:
    """Cut an expression out of the line that it stands on."""
    return lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()
