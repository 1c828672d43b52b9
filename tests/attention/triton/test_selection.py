"""Selections with numbers of their own, per query head, and combined."""

from typing import Any

import pytest

from tests.attention.backends.reference.sample import Centroid, PerHead
from tests.attention.triton.pair import Rows, geometry_of, graph_of, run_pair
from tilewright.attention.flow import FlowBase
from tilewright.attention.graph import DType, FlowKind
from tilewright.attention.indexer import PageAge
from tilewright.attention.planner import DefaultBudget

ROWS = Rows(tokens=(7, 58), budget=DefaultBudget(topk=3), kv_heads=1)


class OwnNumber(Centroid):
    """Two pages, whatever the plan says."""

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        del ctx
        o.select(self.score(q, cache).topk(2))


class Bounded(Centroid):
    """What reaches a score, but one page at least and four at most."""

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        o.select(self.score(q, cache).threshold(0.5, min_pages=1, max_pages=4))
        del ctx


class Windowed(Centroid):
    """The best pages that are not the latest five, and the latest two."""

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        age = PageAge()(ctx=ctx)
        o.select((self.score(q, cache).topk() & (age >= 5)) | (age < 2))


@pytest.mark.parametrize("flow", [OwnNumber, Bounded, Windowed, PerHead])
def test_a_selection_is_that_of_the_reference(flow: type[FlowBase]) -> None:
    graph = graph_of(flow(), geometry_of(FlowKind.GQA, DType.FLOAT32))
    pair = run_pair(graph, ROWS)
    assert pair.pages == pair.expected_pages
    assert 2 < len(pair.pages[1]) < 14, "the data selects nothing or everything"
    assert pair.worst_error() < 1e-5
