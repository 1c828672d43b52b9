"""A budget of the user's own: a Python function, or an expression over the facts of a row."""

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tilewright.attention.planner.budget import Reserved, RowBudget, RowFacts
from tilewright.errors import PlanError

FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "int": int,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round": round,
    "sqrt": math.sqrt,
}
NAMES = ("n_blocks", "n_tokens", "layer", "head", "step", "topk", "ratio", "bos", "eos")
ALIASES = {  # what users of Vortex call the same things
    "cached_block_len": "n_blocks",
    "topk_val": "topk",
    "topk_ratio": "ratio",
    "block_reserved_bos": "bos",
    "block_reserved_eos": "eos",
}
ALLOWED = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Call,
    ast.Name,
    ast.Constant,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
)
MAX_BITS = 4096  # of a power: 9 ** 9 ** 9 would be computed for ever
MOST_LETTERS = 200  # of a text in a message
POWER = "power"  # name of `_power` for the compiled expression; no text can say it


@dataclass(frozen=True, slots=True)
class Policy:
    """``function(n_blocks, n_tokens, layer, head, step, topk, ratio, bos, eos) -> int``.

    It is called with keywords and returns the blocks of the row, reserved ones included.
    ``text`` is what a record shows.
    """

    function: Callable[..., object] = field(compare=False)
    text: str
    topk: int = 30
    ratio: float = 0.0

    def bounds(self, facts: RowFacts, reserved: Reserved) -> RowBudget:
        arguments = {
            "n_blocks": facts.num_blocks,
            "n_tokens": facts.num_tokens,
            "layer": facts.layer,
            "head": facts.head,
            "step": facts.step,
            "topk": self.topk,
            "ratio": self.ratio,
            "bos": reserved.first,
            "eos": reserved.last,
        }
        try:
            blocks = self.function(**arguments)
        except Exception as error:
            where, found = f"policy {self.text!r}", f"{type(error).__name__}: {error}"
            raise PlanError(where, found, "an int for every row", f"look at {facts}") from error
        if not isinstance(blocks, int) or isinstance(blocks, bool):
            fix = "round it: floor(...) or //"
            raise PlanError(f"policy {self.text!r}", repr(blocks), "an int", fix)
        return RowBudget(blocks, blocks)


def parse_policy(text: str, *, topk: int = 30, ratio: float = 0.0) -> Policy:
    """Compile an expression; anything but arithmetic over the known names is an error.

    >>> policy = parse_policy("max(topk + bos + eos, n_blocks // 8)", topk=6)
    >>> policy.bounds(RowFacts(num_blocks=800, num_tokens=12_800), Reserved(1, 1)).at_most
    100
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
        for node in ast.walk(tree):
            _check_node(node, text)
        code = compile(_BoundedPowers().visit(tree), "<policy>", "eval")
    # the last two: too deep
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        found = repr(text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}...")
        fix = str(error) or "shorten it"
        raise PlanError("policy", found, "a Python expression", fix) from error

    def function(**facts: int | float) -> object:
        names = {alias: facts[name] for alias, name in ALIASES.items()}
        return eval(code, {"__builtins__": {}, POWER: _power}, {**FUNCTIONS, **names, **facts})

    return Policy(function, text.strip(), topk, ratio)


class _BoundedPowers(ast.NodeTransformer):
    """Replaces powers by calls that refuse an endless one."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Pow):
            return node
        call = ast.Call(ast.Name(POWER, ast.Load()), [node.left, node.right], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


def _power(base: float, exponent: float) -> object:
    are_whole = isinstance(base, int) and isinstance(exponent, int)
    if are_whole and int(base).bit_length() * exponent > MAX_BITS:
        raise OverflowError(f"a power of more than {MAX_BITS} bits")
    return base**exponent


def _check_node(node: ast.AST, text: str) -> None:
    where = f"policy {text!r}"
    if not isinstance(node, ALLOWED):
        fix = "write arithmetic, comparisons, x if c else y, and the listed functions"
        raise PlanError(where, type(node).__name__, "an arithmetic expression", fix)
    if isinstance(node, ast.LShift | ast.MatMult):
        raise PlanError(where, type(node).__name__, "+, -, *, /, //, % or **", "write 2 ** n")
    if isinstance(node, ast.Name) and node.id not in (*NAMES, *ALIASES, *FUNCTIONS):
        known = ", ".join((*NAMES, *FUNCTIONS))
        raise PlanError(where, f"the name {node.id!r}", f"one of {known}", "rename it")
    if isinstance(node, ast.Constant) and not isinstance(node.value, int | float):
        raise PlanError(where, repr(node.value), "numbers only", "remove it")
    if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name):
        raise PlanError(where, "a call of a value", "a call of a listed function", "remove it")
    if isinstance(node, ast.Call) and node.keywords:
        raise PlanError(where, "keyword arguments", "positional ones", "remove the names")
