"""The text of a Triton kernel as Python that means the same: one rewrite of its syntax tree.

Triton compiles a kernel's text, in which a number that is assigned to a variable, and the index of
a loop, is a scalar with a dtype; ``//`` and ``%`` are C's; ``and``, ``or``, ``not``, comparisons
and ``assert`` act on blocks. The rewrite puts calls of ``triton.scalar`` where Python means
something else, and leaves all else alone. Lines, names, cells and defaults stay the author's.
"""

import ast
import dis
import inspect
import textwrap
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from tilewright.errors import KernelError
from tilewright.language.triton.flow import (
    assigned_names,
    bound_names,
    contains_return,
    is_constexpr,
    is_followed,
    returns_of,
    strong_names,
)

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: ".lt",
    ast.LtE: ".le",
    ast.Gt: ".gt",
    ast.GtE: ".ge",
    ast.Eq: ".eq",
    ast.NotEq: ".ne",
}
_Names = dict[type[ast.operator], str]
_DIVISIONS: _Names = {ast.FloorDiv: ".quotient", ast.Mod: ".remainder"}
_RING: _Names = {ast.Add: ".add", ast.Sub: ".sub", ast.Mult: ".mul", ast.Div: ".div"}
_FUTURE_FLAGS = 0x1FE0000  # of ``from __future__ import ...`` in the flags of code

_known: WeakKeyDictionary[FunctionType, CodeType] = WeakKeyDictionary()

Node = TypeVar("Node", bound=ast.AST)


def triton_code(function: FunctionType) -> CodeType:
    """The code of a function with Triton's meaning; a function is rewritten once."""
    if function in _known:
        return _known[function]
    tree, definition = _parsed(function)
    is_checked = not any(isinstance(node, ast.Assert) for node in ast.walk(definition))
    # a test runner rewrites assertions, so code with some differs from its text rightly
    if is_checked and _instructions(_compiled(tree, function)) != _instructions(function.__code__):
        found = "a source that is not the text that runs"
        raise _refusal(function, found, "load the file again after a change")
    _Rewriter(definition).function()
    _known[function] = _compiled(ast.fix_missing_locations(tree), function)
    return _known[function]


def _parsed(function: FunctionType) -> tuple[ast.Module, ast.FunctionDef]:
    """The text of a function inside one that has its cells; and its definition."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError) as error:
        fix = "define it with def in a file, as Triton asks for too"
        raise _refusal(function, "no source of it", fix) from error
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise _refusal(function, f"a {type(definition).__name__}", "define it with def")
    ast.increment_lineno(tree, max(first, 1) - 1)
    cells = [ast.Name(name, ast.Store()) for name in function.__code__.co_freevars]
    body: list[ast.stmt] = [definition]
    if cells:
        body.insert(0, ast.Assign([*cells], ast.Constant(None)))
    if function.__name__ not in function.__code__.co_freevars:  # it is not a cell to itself
        body.insert(0, ast.Global([definition.name]))
    arguments = ast.arguments([], [], None, [], [], None, [])
    tree.body = [ast.FunctionDef("outer", arguments, body, [])]
    return ast.fix_missing_locations(tree), definition


def _compiled(tree: ast.Module, function: FunctionType) -> CodeType:
    flags = function.__code__.co_flags & _FUTURE_FLAGS
    whole = compile(tree, function.__code__.co_filename, "exec", flags=flags, dont_inherit=True)
    name = function.__code__.co_name
    outer = next(_codes(whole))
    inner = next(code for code in _codes(outer) if code.co_name == name)
    return inner.replace(co_qualname=function.__code__.co_qualname)


def _codes(code: CodeType) -> Iterator[CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, CodeType))


def _instructions(code: CodeType) -> list[tuple[str, str]]:
    """List the instructions of code without those that imports around a function decide."""
    found = []
    for each in dis.get_instructions(code):
        name = each.opname.replace("METHOD", "ATTR")
        if name in ("PUSH_NULL", "PRECALL", "CACHE", "EXTENDED_ARG"):
            continue
        is_position = "JUMP" in name or name == "FOR_ITER" or isinstance(each.argval, CodeType)
        words = each.argrepr.replace("+", " ").replace("NULL|self", "").replace("NULL", "").split()
        found.append((name, "" if is_position else " ".join(words)))
    return found


def _refusal(function: FunctionType, found: str, fix: str) -> KernelError:
    code = function.__code__
    where = f"{code.co_filename}:{code.co_firstlineno} in {function.__name__}"
    return KernelError(where, found, "a Triton function whose text can be read", fix)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


class _Rewriter(ast.NodeTransformer):
    """Rewrites one function after the other.

    A *test* is an expression whose truth alone counts: Python's own operators say it.
    """

    def __init__(self, definition: ast.FunctionDef) -> None:
        arguments, body = definition.args, definition.body
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        self._definition = definition
        self._num_names = 0
        self._constants: set[str] = set()  # declared, not assigned yet
        self._bound = {each.arg for each in named}
        self._strong_names = strong_names(body) - self._bound  # that never hold a constant
        self._following = {each: is_followed(each, body) for each in returns_of(body)}
        self._num_returns = len(self._following)

    def function(self) -> None:
        """Rewrite the body; defaults, annotations and decorators are evaluated elsewhere."""
        definition = self._definition
        definition.body = self._block(definition.body)
        if self._num_returns > 1:
            first = ast.Assign([ast.Name(".several", ast.Store())], ast.Constant(False))
            has_text = ast.get_docstring(definition, clean=False) is not None
            definition.body.insert(int(has_text), _placed(first, definition.body[0]))

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        rewritten: list[ast.stmt] = []
        for statement in body:
            made = self.visit(statement)
            rewritten.extend(made if isinstance(made, list) else [made])
            self._bound |= bound_names(statement)
        return rewritten

    def _branch(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """A body that may not run: what it binds is not bound behind it."""
        bound, constants = set(self._bound), set(self._constants)
        rewritten = self._block(body)
        self._bound, self._constants = bound, constants
        return rewritten

    def _name(self) -> str:
        self._num_names += 1
        return f".{self._num_names}"

    # -- statements ------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        _Rewriter(node).function()
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if isinstance(node.targets[0], ast.Name) and node.targets[0].id in self._constants:
            self._constants.discard(node.targets[0].id)
            node.value = self.visit(node.value)
        else:
            node.value = self._strong(node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            if is_constexpr(node.annotation) and isinstance(node.target, ast.Name):
                self._constants.add(node.target.id)
            return node
        is_constant = is_constexpr(node.annotation)
        node.value = self.visit(node.value) if is_constant else self._strong(node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if not isinstance(node.target, ast.Name):
            node.value = self.visit(node.value)
            return node
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        whole = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        return _placed(ast.Assign([node.target], self._strong(whole)), node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if node.value is None:
            return node
        value = self.visit(node.value)
        if self._num_returns > 1:
            several: ast.expr = ast.Name(".several", ast.Load())
            if self._following[node]:
                several = ast.Constant(True)
            value = _placed(_call(".returned", several, value), node.value)
        node.value = value
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        message = [] if node.msg is None else [self.visit(node.msg)]
        test = _call(".asserted", self.visit(node.test), *message)
        node.test = _placed(test, node.test)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        if self._num_returns > 1 and contains_return(node):
            node.test = self._noted(self.visit(node.test))
        else:
            node.test = self._test(node.test)
        node.body, node.orelse = self._branch(node.body), self._branch(node.orelse)
        return node

    def _noted(self, test: ast.expr) -> ast.expr:
        """A test that also says whether the kernel's values decide it."""
        name = self._name()
        kept = ast.NamedExpr(ast.Name(name, ast.Store()), test)
        noted = _call(".branched", ast.Name(".several", ast.Load()), kept)
        keep = ast.NamedExpr(ast.Name(".several", ast.Store()), noted)
        both = ast.Tuple([keep, ast.Name(name, ast.Load())], ast.Load())
        return _placed(ast.Subscript(both, ast.Constant(1), ast.Load()), test)

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        node.test = self._test(node.test)
        return self._loop(node)

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        node.iter = self.visit(node.iter)
        return self._loop(node)

    def _loop(self, node: ast.For | ast.While) -> ast.AST | list[ast.stmt]:
        """Check before and after a loop the types of the variables that it assigns to.

        What a ``for`` iterates over is passed on too: Triton unrolls ``tl.static_range``.
        """
        carried = sorted(assigned_names(node.body) & self._bound)
        node.body, node.orelse = self._branch(node.body), self._branch(node.orelse)
        if not carried:
            return node
        name, statements = self._name(), []
        indices: ast.expr = ast.Constant(None)
        if isinstance(node, ast.For):
            held = self._name()
            statements.append(ast.Assign([ast.Name(held, ast.Store())], node.iter))
            indices, node.iter = ast.Name(held, ast.Load()), ast.Name(held, ast.Load())
        values = [ast.Name(each, ast.Load()) for each in carried]
        types = _call(".kept_types", indices, *values)
        statements.append(ast.Assign([ast.Name(name, ast.Store())], types))
        names = ast.Tuple([ast.Constant(each) for each in carried], ast.Load())
        after = ast.Expr(_call(".check_carried", ast.Name(name, ast.Load()), names, *values))
        return [*(_placed(each, node) for each in statements), node, _placed(after, node)]

    # -- expressions -----------------------------------------------------------------------------

    def _test(self, node: ast.expr) -> Any:
        match node:
            case ast.BoolOp():
                node.values = [self._test(value) for value in node.values]
                return node
            case ast.UnaryOp(op=ast.Not()):
                node.operand = self._test(node.operand)
                return node
            case ast.Compare():
                node.left = self.visit(node.left)
                node.comparators = [self.visit(each) for each in node.comparators]
                return node
        return self.visit(node)

    def _strong(self, value: ast.expr) -> Any:
        """An expression that is assigned: what may have no dtype gets one."""
        if isinstance(value, ast.Tuple) and not any(
            isinstance(part, ast.Starred) for part in value.elts
        ):
            value.elts = [self._strong(part) for part in value.elts]
            return value
        if not self._is_weak(value):
            return self.visit(value)
        if isinstance(value, ast.Compare) and len(value.ops) == 1:
            return _placed(_call(".strong", self._test(value)), value)
        return _placed(_call(".strong", self.visit(value)), value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        node.value = self._strong(node.value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        name = _DIVISIONS.get(type(node.op))
        constant = node.left if isinstance(node.left, ast.Constant) else None
        may_be_float = isinstance(constant.value, float) if constant else self._is_weak(node.left)
        if name is None and may_be_float:
            name = None if isinstance(node.right, ast.Constant) else _RING.get(type(node.op))
        left, right = self.visit(node.left), self.visit(node.right)
        if name is not None:
            return _placed(_call(name, left, right), node)
        node.left, node.right = left, right
        return node

    def _is_weak(self, node: ast.expr) -> bool:
        """Whether an expression may be a number without a dtype; asked before it is rewritten."""
        match node:
            case ast.Name(id=name):
                return name not in self._strong_names
            case ast.BinOp(left=left, right=right):
                return self._is_weak(left) and self._is_weak(right)
            case ast.UnaryOp(operand=value) | ast.Subscript(value=value):
                return self._is_weak(value)
        return True

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """A chain is ``and`` of its links, with each operand evaluated once."""
        left, links = self.visit(node.left), []
        for place, (op, comparator) in enumerate(zip(node.ops, node.comparators, strict=True)):
            right = self.visit(comparator)
            if place < len(node.ops) - 1:
                name = self._name()
                kept: ast.expr = ast.NamedExpr(ast.Name(name, ast.Store()), right)
                links.append(self._link(op, left, kept))
                left = ast.Name(name, ast.Load())
            else:
                links.append(self._link(op, left, right))
        return _placed(self._joined(".and", links), node)

    def _link(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> ast.expr:
        name = _COMPARISONS.get(type(op))
        return ast.Compare(left, [op], [right]) if name is None else _call(name, left, right)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        name = ".and" if isinstance(node.op, ast.And) else ".or"
        return _placed(self._joined(name, [self.visit(value) for value in node.values]), node)

    def _joined(self, function: str, values: list[ast.expr]) -> ast.expr:
        """``first and rest``: the first one, where it decides, else both."""
        first, *rest = values
        if not rest:
            return first
        name = self._name()
        kept = ast.NamedExpr(ast.Name(name, ast.Store()), first)
        decides = _call(f".decides_{function[1:]}", kept)
        again = ast.Name(name, ast.Load())
        return ast.IfExp(decides, again, _call(function, again, self._joined(function, rest)))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return _placed(_call(".not", operand), node)
        node.operand = operand
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        name = self._name()
        kept = ast.NamedExpr(ast.Name(name, ast.Store()), self.visit(node.test))
        body, orelse = self.visit(node.body), self.visit(node.orelse)
        choice = ast.IfExp(ast.Name(name, ast.Load()), body, orelse)
        return _placed(_call(".chosen", kept, choice), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.value = self.visit(node.value)
        if node.attr in ("cdiv", "value") and isinstance(node.ctx, ast.Load):
            return _placed(_call(f".{node.attr}", node.value), node)
        return node


def _placed(node: Node, like: ast.AST) -> Node:
    """A new node, and all new ones in it, at the place of an old one."""
    ast.copy_location(node, like)
    for each in ast.walk(node):
        if isinstance(each, ast.expr | ast.stmt) and not hasattr(each, "lineno"):
            ast.copy_location(each, like)
    return node
