"""Typed fields, and what each request in flight has once."""

from typing import Any

import numpy as np
import pytest

from tests.attention.flow.making import GEOMETRY, examine, flow_of, score
from tests.attention.graph.parse import parse_graph
from tilewright.attention.abs import FORMAT
from tilewright.attention.backends.reference import Session, SessionSpec
from tilewright.attention.codegen import compile_graph
from tilewright.attention.codegen.plan.target import Tiling
from tilewright.attention.flow import trace_flow, vFlow
from tilewright.attention.graph import DType, Geometry
from tilewright.attention.graph.text import graph_text
from tilewright.attention.indexer import GeMM, Load, Save, topK
from tilewright.attention.ops.table import OPS
from tilewright.attention.planner import DefaultBudget, PlanSpec
from tilewright.errors import CodegenError


def keeps_query(q: Any, o: Any, cache: Any, ctx: Any) -> None:
    query = Load()(cache["query"], ctx=ctx) * 0.5 + q.mean(1)
    Save()(query, cache["query"], ctx=ctx)
    topK()(GeMM()(query, cache["centroids"], ctx=ctx), o, ctx=ctx)


def with_request_cache(indexer: Any = keeps_query, **fields: Any) -> vFlow:
    declared = fields or {"query": (1, 16)}
    return flow_of(indexer, create_request_cache=lambda _self, _size, _dim: declared)


@pytest.mark.parametrize("dtype", ["bfloat16", DType.BFLOAT16, "torch.bfloat16", "bf16"])
def test_a_field_may_name_its_element_type(dtype: object) -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        o.select(score(q, cache).topk())

    graph = examine(forward, fields={"centroids": ((1, 16), dtype)}).graph
    (field,) = (item for item in graph.fields if item.name == "centroids")
    assert (field.type.shape, field.type.dtype) == ((1, 16), DType.BFLOAT16)


def test_a_flow_has_no_request_cache_by_default() -> None:
    flow = flow_of(lambda *_: None)
    assert flow.create_request_cache(8, 16) == {}


def test_a_request_cache_is_slotted_and_no_part_of_the_token_ratio() -> None:
    plain, flow = flow_of(keeps_query), with_request_cache(query=((1, 16), "float32"))
    graph = trace_flow(flow, GEOMETRY)
    plain.initialize_for(GEOMETRY)
    assert flow.get_token_ratio() == plain.get_token_ratio()
    assert flow.get_cache_meta_info() == plain.get_cache_meta_info()
    assert flow.get_request_cache_meta_info() == {"query": ((1, 16), DType.FLOAT32)}
    (state,) = graph.states
    assert (state.type.format, state.type.format.value) == (FORMAT.SLOTTED, 4)
    text = graph_text(graph)
    assert graph_text(parse_graph(text, OPS)) == text


def test_state_of_a_request_grows_with_requests_and_not_with_pages() -> None:
    sizes = Geometry.gqa(page_size=8, head_dim=16, query_heads=4, field_dtype=DType.FLOAT32)
    graph = trace_flow(with_request_cache(), sizes)
    plan = PlanSpec(budget=DefaultBudget(topk=2))
    session = Session(graph, SessionSpec(num_kv_heads=2, num_pages=64, plan=plan))
    found = []
    for request, length in (("short", 64), ("long", 256)):
        session.admit(request, range(length))
        tokens = np.ones((length, 2, 16), np.float32)
        step = session.begin({request: range(length)}, prompt=True)
        step.write(0, request, tokens, tokens)
        step.finish()
        step = session.begin({request: [length]})
        step.write(0, request, tokens[:1], tokens[:1])
        step.attend(0, {request: np.ones((1, 2, 4, 16), np.float32)})
        step.finish()
        found.append(session.state_bytes)
    assert found == [2 * 16 * 4, 2 * 2 * 16 * 4]
    session.release("short")
    assert session.state_bytes == 2 * 16 * 4


def test_kernels_refuse_a_request_cache_by_name() -> None:
    graph = trace_flow(with_request_cache(), GEOMETRY)
    with pytest.raises(CodegenError, match=r"found a request cache.*reference backend"):
        compile_graph(graph, Tiling())
