"""A seeded sample of mutants: places in the source where one operator, number or word changes."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cosmic_ray.ast import get_ast
from cosmic_ray.mutating import MutationVisitor
from cosmic_ray.plugins import get_operator, operator_names

SOURCE = Path("src/tilewright")
Part = tuple[tuple[int, int], tuple[int, int]]  # start and end, each as line and column
NEED_ARGUMENTS = ("core/VariableInserter", "core/VariableReplacer")
# `is` and `==` agree on None, enum members and small integers: such a mutant is no fault
SAME_IN_EFFECT = frozenset(
    f"core/ReplaceComparisonOperator_{before}_{after}"
    for one, other in (("Is", "Eq"), ("IsNot", "NotEq"))
    for before, after in ((one, other), (other, one))
)
OPERATORS = tuple(
    name
    for name in sorted(operator_names())
    if name not in NEED_ARGUMENTS and name not in SAME_IN_EFFECT and name != "core/RemoveDecorator"
)


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """The ``occurrence``-th place of a file where ``operator`` applies."""

    path: str
    line: int
    column: int
    operator: str
    occurrence: int

    @property
    def label(self) -> str:
        return f"{self.path}:{self.line}:{self.column} {self.operator.removeprefix('core/')}"

    def source(self, text: str) -> str:
        """Return the text of the file with this fault in it."""
        changed = MutationVisitor.mutate_code(text, get_operator(self.operator)(), self.occurrence)
        return str(changed)


def draw_mutants(root: Path, packages: Sequence[str], seed: int, count: int) -> list[Mutant]:
    """Draw ``count`` places by ``seed``, and at each place one of the mutants that it allows.

    A place is drawn once however many operators could stand there, so that an addition, which
    eleven others may replace, is no likelier than a comparison.
    """
    places: dict[tuple[str, int, int], list[Mutant]] = defaultdict(list)
    for package in packages:
        for path in sorted((root / SOURCE / package).rglob("*.py")):
            for mutant in _mutants(path.relative_to(root).as_posix(), path.read_text("utf-8")):
                places[mutant.path, mutant.line, mutant.column].append(mutant)
    drawing = np.random.default_rng(seed)
    drawn: list[Mutant] = []
    ordered = [places[place] for place in sorted(places)]
    for index in drawing.permutation(len(ordered)):
        if len(drawn) == count:
            break
        allowed = ordered[index]
        mutant = allowed[drawing.integers(len(allowed))]
        if _is_python(mutant.source((root / mutant.path).read_text("utf-8"))):
            drawn.append(mutant)
    return drawn


def _is_python(text: str) -> bool:
    """Return whether the text parses; the star of keyword-only parameters, say, is no product."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _mutants(path: str, text: str) -> Iterator[Mutant]:
    passed_over = _parts_without_behaviour(text)
    nodes = list(_nodes(get_ast(text)))
    for name in OPERATORS:
        operator, occurrence = get_operator(name)(), 0
        for node in nodes:
            for (line, column), _ in operator.mutation_positions(node):
                if not any(start <= (line, column) < end for start, end in passed_over):
                    yield Mutant(path, line, column, name, occurrence)
                occurrence += 1


def _nodes(node: object) -> Iterator[object]:
    """Walk a tree in the order in which a mutation visitor does."""
    yield node
    for child in getattr(node, "children", ()):
        yield from _nodes(child)


def _parts_without_behaviour(text: str) -> list[Part]:
    """Return where annotations, decorators and type aliases stand: no fault there is behaviour."""
    parts = [part for node in ast.walk(ast.parse(text)) for part in _typing_parts(node)]
    return [
        ((part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset))
        for part in parts
        if part.end_lineno is not None and part.end_col_offset is not None
    ]


def _typing_parts(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from node.decorator_list
            if node.returns is not None:
                yield node.returns
        case ast.ClassDef():
            yield from node.decorator_list
        case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
            yield annotation
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(op=ast.BitOr()) as value):
            if name[:1].isupper() and not name.isupper():  # an alias: Message = A | B
                yield value
