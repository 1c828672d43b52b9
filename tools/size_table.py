"""Lists files and functions beyond the size guide; beyond a hard limit in ``src`` is a failure."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCES = ("src/**/*.py", "csrc/**/*.[ch]pp", "tests/**/*.py", "tools/**/*.py")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Limit:
    soft: int
    hard: int


FILE_LINES = Limit(soft=300, hard=500)
FUNCTION_LINES = Limit(soft=40, hard=60)


@dataclass(frozen=True, slots=True)
class Size:
    place: str
    lines: int
    limit: Limit

    def is_noteworthy(self) -> bool:
        return self.lines > self.limit.soft

    def is_refused(self) -> bool:
        return self.lines > self.limit.hard and self.place.startswith("src/")

    def row(self) -> str:
        verdict = "too long" if self.is_refused() else "long"
        return f"{verdict:<9} {self.lines:>5} lines (guide {self.limit.soft})  {self.place}"


def main(root: Path) -> int:
    sizes = [
        size for pattern in SOURCES for path in root.glob(pattern) for size in sizes_of(root, path)
    ]
    noteworthy = sorted(
        filter(Size.is_noteworthy, sizes), key=lambda size: (-size.lines, size.place)
    )
    for size in noteworthy:
        print(size.row())
    print(f"{len(sizes)} files and functions, {len(noteworthy)} beyond the size guide")
    return int(any(map(Size.is_refused, sizes)))


def sizes_of(root: Path, path: Path) -> Iterator[Size]:
    place = path.relative_to(root).as_posix()
    text = path.read_text()
    yield Size(place, len(text.splitlines()), FILE_LINES)
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, Function):
                yield Size(f"{place}:{node.lineno} {node.name}", code_lines(node), FUNCTION_LINES)


def code_lines(function: Function) -> int:
    """Lines from ``def`` to the end without the docstring: explaining is never too long."""
    return last_line(function) - function.lineno + 1 - docstring_lines(function)


def docstring_lines(function: Function) -> int:
    if ast.get_docstring(function) is None:
        return 0
    docstring = function.body[0]
    return last_line(docstring) - docstring.lineno + 1


def last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
