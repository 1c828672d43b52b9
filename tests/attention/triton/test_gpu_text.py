"""Triton's compiler takes the text down to the code of a GPU, which need not be there."""

from typing import Any

import numpy as np
import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.triton import test_ops, test_rows
from tests.attention.triton.interpreter import ask
from tests.attention.triton.pair import Both, Rows, geometry_of, graph_of
from tilewright.attention.backends.triton import plan
from tilewright.attention.codegen import Kernel, KernelFile, compile_graph
from tilewright.attention.flow import registry
from tilewright.attention.graph import DType, FlowKind, Graph
from tilewright.attention.planner import DefaultBudget

ROWS = Rows(tokens=(13,), budget=DefaultBudget(topk=1), kv_heads=1)
NAMES = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3": "fp8e4nv",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "int64": "i64",
    "int32": "i32",
    "int8": "i8",
    "uint8": "u8",
    "bool": "i1",
}
"""Element types as a signature of Triton names them."""


def type_of(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"*{NAMES[value.dtype.name]}"
    return "fp32" if isinstance(value, float) else "i32"


def quest() -> Graph:
    return graph_of(registry.get("quest")(), geometry_of(FlowKind.GQA, DType.FLOAT16, width=64))


def types_for(both: Both) -> dict[str, str]:
    """Of everything that the launcher of a step, and of complete pages, passes."""
    both.begin()
    sizes, arguments = both.launch(both.draw_queries())
    made = plan(both.file, sizes)
    types = {name: type_of(value) for name, value in arguments.items()}
    types |= {item.name: f"*{NAMES[item.dtype.value]}" for item in made.buffers}
    types |= {name: "i32" for name, _ in made.numbers}
    return types | {"new_blocks": "*i64", "new_pages": "*i32", "new_tokens": "*i32"}


def kernels_of(file: KernelFile, what: str) -> list[Kernel]:
    """Those whose text the case is about."""
    if what == "every op of a page":
        assert file.completion is not None
        return [file.completion]
    if what == "a selection by share":
        return [
            kernel
            for kernel in file.step
            if any(name.endswith("_weights") for name in kernel.arguments)
        ][:1]
    return list(file.step)


@pytest.mark.parametrize(
    ("what", "graph"),
    [
        ("quest", quest()),
        ("quest in two levels", quest()),
        ("every op of a page", test_ops.probe_of(0)),
        ("a selection by share", test_rows.probe(1)),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_the_compiler_makes_code_of_a_gpu(what: str, graph: Graph) -> None:
    file = compile_graph(graph, most=8 if what == "quest in two levels" else None)
    types = types_for(Both(graph, ROWS, file))
    kernels = kernels_of(file, what)
    assert kernels
    for kernel in kernels:
        known = types | {name: "i32" for name in kernel.arguments if name.endswith("_row")}
        made = ask("compile", file, kernel.name, {name: known[name] for name in kernel.arguments})
        assert made["cubin"] > 0
