"""Measures of the code base: walks of five commands, sizes, names, docstrings, start-up."""

import argparse
import ast
import json
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tilewright"
MAX_FILE_LINES, MAX_FUNCTION_LINES = 300, 60
NUM_STARTS = 5
WALKS = ("program", "triton_launch", "flow_latency", "all_reduce", "machine")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Source:
    """A file of the package with its syntax tree."""

    path: Path
    text: str
    tree: ast.Module


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    found = measure()
    if parser.parse_args().json:
        print(json.dumps(found, indent=1))
        return 0
    for name, value in found.items():
        if isinstance(value, dict):
            for walk, counts in value.items():
                print(f"{walk:<22}{counts['files']:>8} files {counts['functions']:>6} functions")
        else:
            print(f"{name:<22}{value:>8}")
    return 0


def measure() -> dict[str, Any]:
    """Return the measures by name; times are CPU seconds, the best of five starts."""
    sources = [
        Source(path, text, ast.parse(text))
        for path in sorted(SOURCE.rglob("*.py"))
        for text in [path.read_text("utf-8")]
    ]
    functions = [node for each in sources for node in ast.walk(each.tree) if is_function(node)]
    return {
        "walks": {name: walk(name) for name in WALKS},
        "code_lines": sum(map(code_lines, sources)),
        "src_files": len(sources),
        "files_over_300": sum(each.text.count("\n") > MAX_FILE_LINES for each in sources),
        "functions_over_60": sum(map(is_long, functions)),
        "class_names_shared": shared_class_names(sources),
        "public_docstrings": public_docstrings(sources),
        "help_s": best_start("-m", "tilewright", "--help"),
        "import_s": round(
            max(0.0, best_start("-c", "import tilewright") - best_start("-c", "")), 3
        ),
        "glossary_rows": glossary_rows(),
    }


def is_function(node: ast.AST) -> bool:
    return isinstance(node, Function)


def is_long(node: Any) -> bool:
    """Return whether a function has more than 60 lines without its docstring."""
    lines = node.end_lineno - node.lineno + 1
    if ast.get_docstring(node) is not None:
        lines -= node.body[0].end_lineno - node.body[0].lineno + 1
    return bool(lines > MAX_FUNCTION_LINES)


def code_lines(source: Source) -> int:
    """Return the number of lines that are not blank, comment, docstring or import."""
    left_out: set[int] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(lines_of(node))
        elif isinstance(node, Documented) and ast.get_docstring(node) is not None:
            left_out.update(lines_of(node.body[0]))
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in left_out
        for number, line in enumerate(source.text.splitlines(), 1)
    )


def lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def shared_class_names(sources: list[Source]) -> int:
    """Return how many public class names have more than one owner."""
    owners = Counter(
        node.name
        for each in sources
        for node in each.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sum(count > 1 for count in owners.values())


def public_docstrings(sources: list[Source]) -> float:
    """Return the fraction of public modules, classes and functions that have a docstring."""
    nodes = [node for each in sources for node in public_nodes(each.tree)]
    return round(sum(ast.get_docstring(node) is not None for node in nodes) / len(nodes), 4)


def public_nodes(node: Documented) -> Iterator[Documented]:
    yield node
    if not isinstance(node, Function):
        for inner in node.body:
            if isinstance(inner, Documented) and not inner.name.startswith("_"):
                yield from public_nodes(inner)


def best_start(*arguments: str) -> float:
    """Return the CPU seconds of a Python process, the best of five."""
    return round(min(cpu_seconds(arguments) for _ in range(NUM_STARTS)), 3)


def cpu_seconds(arguments: tuple[str, ...]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def glossary_rows() -> int:
    lines = (ROOT / "docs" / "glossary.md").read_text("utf-8").splitlines()
    return sum(line.startswith("| ") for line in lines) - 1  # the head


def walk(name: str) -> dict[str, int]:
    """Return how many files and functions a command enters, in a process of its own."""
    command = [sys.executable, "-m", "tools.house_walk", name]
    run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    found: dict[str, int] = json.loads(run.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    sys.exit(main())
