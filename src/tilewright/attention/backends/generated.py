"""Generated kernels as backends run them: functions out of a text, and what a step gives."""

import ast
import hashlib
import linecache
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.attention.codegen import Kernel, KernelFile
from tilewright.attention.graph import Field, Graph, Inherit, StateVar
from tilewright.errors import AttentionError


@dataclass(frozen=True, slots=True)
class LoadedKernels:
    """A kernel file with its functions by name, and the path that errors and traces show."""

    file: KernelFile
    functions: Mapping[str, Any]
    path: str


def run_text(file: KernelFile, names: Mapping[str, Any]) -> LoadedKernels:
    """Run the text of a file, with ``names`` in the place of its imports if there are any.

    Lines stay where they are, and can be read by the path: by a breakdown by lines, and by Triton.
    """
    path = f"<kernels of {file.flow}, {hashlib.sha256(file.text.encode()).hexdigest()[:12]}>"
    lines = file.text.splitlines(keepends=True)
    linecache.cache[path] = (len(file.text), None, lines, path)
    tree = ast.parse(file.text, path)
    if names:
        tree.body = [node for node in tree.body if not isinstance(node, ast.Import)]
    found: dict[str, Any] = {"__name__": f"kernels_of_{file.flow}", **names}
    exec(compile(tree, path, "exec"), found)  # text of our own generator
    functions = {kernel.name: found[kernel.name] for kernel in kernels_of(file)}
    return LoadedKernels(file, functions, path)


def kernels_of(file: KernelFile) -> tuple[Kernel, ...]:
    """Return all kernels of a file."""
    return file.step if file.completion is None else (*file.step, file.completion)


def chosen_arguments(kernel: Kernel, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a kernel takes; refuse a launch that lacks one."""
    missing = [name for name in kernel.arguments if name not in given]
    if missing:
        expected = f"arguments {', '.join(kernel.arguments)}"
        fix = f"pass {', '.join(missing)}"
        raise AttentionError(f"kernel {kernel.name}", f"no {', '.join(missing)}", expected, fix)
    return {name: given[name] for name in kernel.arguments}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What a decode step gives. Rows are requests times KV heads."""

    output: Any  # float32 [rows, query heads, value channels]; None without values
    log_sum_exp: Any  # float32 [rows, query heads]; None too if several softmaxes were added


def pooled(graph: Graph) -> dict[str, Field | StateVar]:
    """Return what lies in pools: fields, and what the state of a page starts with if it knows."""
    written = {write.target for write in graph.field_writes}
    found: dict[str, Field | StateVar] = {field.name: field for field in graph.fields}
    for state in graph.states:
        if state.name in written or state.inherit is Inherit.SNAPSHOT:
            found[state.name] = state
    return found
