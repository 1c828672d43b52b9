"""The evaluation of whole graphs, where the executor's tests do not look."""

import numpy as np
import pytest

from tests.attention.flows.case import Case, request_of
from tests.attention.flows.executor import run_session
from tests.attention.oracle_ops.graph import run_graph
from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import trace_flow, vFlow
from tilewright.attention.indexer import ShiftPages


class LooksAhead(vFlow):
    """A page is as good as the mean key of the next one, which may be unfinished."""

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        del block_size
        return {"centroids": (1, head_dim)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        del loc, ctx
        cache["centroids"] = cache["k"].mean(1)

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        score = ShiftPages(1)(cache["centroids"] @ q.mean(1).T, ctx=ctx)
        o.select(score.topk())


class LooksAtUnfinished(LooksAhead):
    partial_pages = True


@pytest.mark.parametrize("flow", [LooksAhead, LooksAtUnfinished])
def test_an_unfinished_page_has_a_summary_only_if_the_flow_asks(flow: type[LooksAhead]) -> None:
    case = Case("ahead", flow, lambda _decodes, _prompt: [], budget=2)
    graph = trace_flow(flow(), case.geometry)
    request = request_of(case, 1)
    outcomes = run_session(graph, case, request)
    (scores,) = [node.inputs[0] for node in graph.indexer_roots() if node.op.name == "TopK"]
    for outcome, results in zip(outcomes, run_graph(graph, request), strict=True):
        for head, result in enumerate(results):
            assert outcome.pages[head] == result.pages[0]
            np.testing.assert_allclose(outcome.out[head], result.out, rtol=1e-4, atol=1e-5)
    first = next(iter(run_graph(graph, request)))[0]
    before_last = float(first.values[scores][-2, 0, 0])
    assert (before_last != 0.0) is flow.partial_pages
