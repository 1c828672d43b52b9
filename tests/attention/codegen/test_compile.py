"""The text of kernels: readable, complete, refused by name where an op has no kernel."""

import time
from collections.abc import Callable

import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tilewright.attention.codegen import Deal, KernelFile, Merge, Target, Tiling, compile_graph
from tilewright.attention.flow import registry, trace_flow
from tilewright.attention.graph import Graph
from tilewright.attention.passes import optimize_graph
from tilewright.attention.verify import geometries
from tilewright.errors import CodegenError

GOLDEN = (
    "quest",
    "block_sparse_attention",
    "streaming_llm",
    "moba",
    "quest_mla",
    "mean_quest_blend",
)


def graph_of(name: str) -> Graph:
    flow = registry.get(name)()
    sizes = geometries(page_size=16, head_dim=None, query_heads=None)
    return optimize_graph(trace_flow(flow, sizes[flow.kind], name=name))


def compiled(name: str, tiling: Tiling | None = None) -> KernelFile:
    return compile_graph(graph_of(name), tiling)


@pytest.mark.parametrize("name", GOLDEN)
def test_kernels_are_the_text_that_was_reviewed(
    name: str, check_golden: Callable[[str], None]
) -> None:
    check_golden(compiled(name).text)


@pytest.mark.parametrize("name", GOLDEN)
def test_kernels_are_python_and_every_argument_is_declared(name: str) -> None:
    file = compiled(name)
    compile(file.text, name, "exec")
    for kernel in file.step:
        head = file.text.partition(f"def {kernel.name}(")[2].partition("):")[0]
        declared = [line.partition(",")[0].strip() for line in head.strip().splitlines()]
        assert tuple(declared) == kernel.arguments


@pytest.mark.parametrize("name", registry.list_keys())
def test_every_ready_flow_compiles(name: str) -> None:
    compile(compiled(name).text, name, "exec")


TARGETS = {
    "a row": Target(rows=8, pages=2048),
    "members": Target(rows=8, pages=256, members=8, deal=Deal.DEALT),
    "queues": Target(
        rows=8,
        pages=256,
        members=8,
        deal=Deal.CONTIGUOUS,
        merges=frozenset({Merge.MEMORY, Merge.IPCQ}),
    ),
}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("name", ["quest", "quest_mla"])
def test_kernels_of_whole_rows_are_the_text_that_was_reviewed(
    name: str, target: Target, check_golden: Callable[[str], None]
) -> None:
    check_golden(compile_graph(graph_of(name), None, target).text)


@pytest.mark.parametrize("name", registry.list_keys())
def test_every_ready_flow_compiles_for_whole_rows_and_for_members(name: str) -> None:
    graph = graph_of(name)
    for target in TARGETS.values():
        file = compile_graph(graph, None, target)
        compile(file.text, name, "exec")
        assert all(kernel.stages for kernel in file.step)


def test_the_same_graph_gives_the_same_file() -> None:
    assert compiled("quest") == compiled("quest")


def test_a_flow_compiles_within_a_second() -> None:
    graph = graph_of("quest")
    start = time.process_time()
    compile_graph(graph)
    assert time.process_time() - start < 1.0


def test_a_wider_value_makes_a_smaller_tile() -> None:
    narrow, wide = (compiled("quest", Tiling(max_elements=size)) for size in (1 << 15, 1 << 11))
    assert (narrow.step[0].tile, wide.step[0].tile) == (16, 4)


@pytest.mark.parametrize(("name", "size"), [("row_tile", 1000), ("page_tile", 0)])
def test_a_tile_that_is_no_power_of_two_is_refused(name: str, size: int) -> None:
    with pytest.raises(CodegenError, match=f"tiling.{name}: found {size}"):
        Tiling(**{name: size})
