"""Flow files with random changes of their syntax trees, checked, shown, compiled and run."""

import ast
import copy
from functools import cache
from pathlib import Path

import tilewright
from tests.fuzz.command import run_command
from tests.fuzz.generator import Random
from tests.fuzz.mutation import mutated_bytes

__all__ = ("run_flow_file",)

FLOWS = Path(tilewright.__file__).parent / "attention/flows"
CONSTANTS: tuple[object, ...] = (
    0, 1, 2, 3, -1, 8, 16, 64, 1000, 2**31, 0.5, -0.5, 1e30, float("inf"), None, True, "", "k", "v",
    "max", (), (1, 2),
)  # fmt: skip
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.MatMult, ast.FloorDiv, ast.Mod)
SIZES = ("--page-size", "4", "--head-dim", "80", "--group", "2", "--json")  # 64 of them: RoPE's
SMALL = (*SIZES, "--context", "64", "--batch", "1", "--budget", "3")


@cache
def base_flows() -> tuple[ast.Module, ...]:
    """Return the syntax trees of all ready flows that register something."""
    texts = [file.read_text("utf-8") for file in sorted(FLOWS.glob("*.py"))]
    return tuple(ast.parse(text) for text in texts if "@register(" in text)


@cache
def words() -> tuple[str, ...]:
    """Return the names of attributes and variables that flows use."""
    nodes = [node for tree in base_flows() for node in ast.walk(tree)]
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return tuple(sorted(attributes | names))


@cache
def expressions() -> tuple[ast.expr, ...]:
    """Return calls, products and other expressions of all flows, to be put elsewhere."""
    kinds = (ast.Call, ast.BinOp, ast.Subscript, ast.Attribute)
    found = [node for tree in base_flows() for node in ast.walk(tree) if isinstance(node, kinds)]
    return tuple(found)


def run_flow_file(rng: Random, folder: Path) -> None:
    """Change a flow and give it to a command."""
    del folder
    tree = copy.deepcopy(rng.choice(base_flows()))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        _mutate(rng, tree)
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
    except ValueError:  # no text has such a tree: a number in the place of an f-string's letters
        return
    content = text.encode("utf-8", "replace")
    if rng.random() < 0.05:
        content = mutated_bytes(rng, content)
    Path("flow.py").write_bytes(content)
    match rng.randrange(6):
        case 0:
            run_command("attention", "check", "flow.py", *SIZES)
        case 1:
            arguments = rng.choice(((), ("--optimized",), ("--optimized", "--svg", "flow.svg")))
            run_command("attention", "show", "flow.py", *arguments, *SIZES)
        case 2:
            emit = rng.choice(("triton", "machine"))
            run_command("attention", "compile", "flow.py", "--emit", emit, *SIZES)
        case 3:
            machine = ("--backend", "machine", "--machine", "ahbm-small", "--phases", "1")
            run_command("attention", "run", "--flow", "flow.py", *machine, *SMALL)
        case _:
            run_command("attention", "run", "--flow", "flow.py", "--steps", "2", *SMALL)


def _mutate(rng: Random, tree: ast.Module) -> None:
    """Change one node of the classes of a file; its imports stay."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    node = rng.choice([node for each in classes for node in ast.walk(each)])
    match node:
        case ast.Constant():
            node.value = rng.choice(CONSTANTS)  # type: ignore[assignment]  # a tuple is fine here
        case ast.Attribute():
            node.attr = rng.choice(words())
        case ast.Name():
            node.id = rng.choice(words())
        case ast.BinOp():
            node.op = rng.choice(OPERATORS)()
        case ast.Call():
            _mutate_call(rng, node)
        case ast.FunctionDef() | ast.ClassDef():
            _mutate_body(rng, node.body)
        case ast.Return() | ast.Assign() if node.value is not None:
            node.value = copy.deepcopy(rng.choice(expressions()))
        case _:
            _mutate_body(rng, rng.choice(classes).body)


def _mutate_call(rng: Random, node: ast.Call) -> None:
    match rng.randrange(5):
        case 0 if node.args:
            del node.args[rng.randrange(len(node.args))]
        case 1:
            node.args.append(ast.Constant(rng.choice(CONSTANTS)))  # type: ignore[arg-type]
        case 2 if node.keywords:
            del node.keywords[rng.randrange(len(node.keywords))]
        case 3 if node.args:
            node.args[rng.randrange(len(node.args))] = copy.deepcopy(rng.choice(expressions()))
        case _:
            rng.shuffle(node.args)


def _mutate_body(rng: Random, body: list[ast.stmt]) -> None:
    place = rng.randrange(len(body))
    match rng.randrange(3):
        case 0 if len(body) > 1:
            del body[place]
        case 1:
            body.insert(place, copy.deepcopy(body[rng.randrange(len(body))]))
        case _:
            other = rng.randrange(len(body))
            body[place], body[other] = body[other], body[place]
