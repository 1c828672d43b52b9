"""Files of kernels by what they are made from."""

from dataclasses import replace

import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.triton.pair import geometry_of, graph_of
from tilewright.attention.codegen import Cut, Fusion, KernelCache, Target, Tiling, kernel_key
from tilewright.attention.flow import registry
from tilewright.attention.graph import DType, FlowKind, Graph

TARGET = Target(rows=8, pages=512)


def quest(width: int = 16) -> Graph:
    sizes = geometry_of(FlowKind.GQA, DType.FLOAT16, width=width)
    return graph_of(registry.get("quest")(), sizes, "quest")


def test_a_flow_that_is_traced_anew_is_not_compiled_anew() -> None:
    cache = KernelCache()
    assert cache.compile_graph(quest(), None, TARGET) is cache.compile_graph(quest(), None, TARGET)
    assert cache.num_compiled == 1


@pytest.mark.parametrize(
    "key",
    [
        kernel_key(quest(32), None, TARGET),
        kernel_key(quest(), Tiling(page_tile=8), TARGET),
        kernel_key(quest(), None, replace(TARGET, pages=513)),
        kernel_key(quest(), None, None),
        kernel_key(quest(), None, TARGET, Cut(fusions=frozenset(Fusion))),
        kernel_key(quest(), None, TARGET, by_mass=True),
    ],
    ids=["sizes", "tiling", "target", "no target", "cut", "by mass"],
)
def test_another_key_is_for_whatever_a_file_depends_on(key: str) -> None:
    assert key != kernel_key(quest(), None, TARGET)


def test_the_file_that_was_asked_for_longest_ago_goes_first() -> None:
    cache = KernelCache(capacity=2)
    for pages in (8, 16, 8, 32, 8):
        cache.compile_graph(quest(), None, replace(TARGET, pages=pages))
    assert cache.num_compiled == 3
    cache.compile_graph(quest(), None, replace(TARGET, pages=16))
    assert cache.num_compiled == 4
