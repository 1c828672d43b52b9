"""Values of ops of the indexer side: over pages and heads, of positions, of what is kept.

Every value is the next state of a variable, so that a step leaves it for us to see.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.attention.triton.pair import SMALL, Pair, Rows, geometry_of, graph_of, run_steps
from tilewright.attention.flow import registry
from tilewright.attention.graph import (
    FORMAT,
    DType,
    FlowKind,
    Graph,
    Leading,
    Node,
    Op,
    Parameter,
    Scope,
    Side,
    Span,
    StateVar,
    StateWrite,
    ValueType,
    make_node,
    verify_graph,
)
from tilewright.attention.ops import (
    binary,
    choose,
    compare,
    layout,
    leaf,
    linear,
    page_axis,
    position,
    reduce,
    selection,
    unary,
)
from tilewright.attention.ops.page_axis import Kind
from tilewright.attention.planner import DefaultBudget, StateAdvance

ALL = Span.ALL
OF_SCORES: Mapping[str, Op] = {
    "softmax": page_axis.Softmax(0, 0.25),
    "normalized": page_axis.Normalize(),
    "normalized_all": page_axis.Normalize(ALL),
    "sums": page_axis.CumSum(0),
    "sums_back": page_axis.CumSum(0, reverse=True, span=ALL),
    "pooled_sum": page_axis.PoolPages(Kind.SUM, 1, 2),
    "pooled_mean": page_axis.PoolPages(Kind.MEAN, 2, 1, ALL),
    "pooled_max": page_axis.PoolPages(Kind.MAX, 1, 1),
    "pooled_min": page_axis.PoolPages(Kind.MIN, 0, 2, ALL),
    "later": page_axis.ShiftPages(2, 5.0),
    "earlier": page_axis.ShiftPages(-1),
    "heads_sum": page_axis.AcrossHeads(Kind.SUM),
    "heads_mean": page_axis.AcrossHeads(Kind.MEAN),
    "heads_max": page_axis.AcrossHeads(Kind.MAX),
    "heads_min": page_axis.AcrossHeads(Kind.MIN),
}
OF_ROWS: Mapping[str, Op] = {
    "sum": reduce.Sum(0),
    "sum_all": reduce.Sum(0, ALL),
    "mean": reduce.Mean(0),
    "max": reduce.Max(0, ALL),
    "min": reduce.Min(0),
    "norm": reduce.L2Norm(0),
    "arg_max": reduce.ArgMax(0),
    "arg_max_all": reduce.ArgMax(0, ALL),
}
SELECTIONS: Mapping[str, Op] = {
    "top": selection.TopK(3),
    "planned": selection.TopK(),
    "approximate": selection.ApproxTopK(0.1),
    "share": selection.TopP(0.6),
    "share_of_all": selection.TopP(0.7, span=ALL),
    "share_at_least": selection.TopP(0.05, min_pages=3),
    "share_at_most": selection.TopP(1.0, max_pages=2),
    "share_of_everything": selection.TopP(1.0),
    "reached": selection.Threshold(1.0, min_pages=1),
    "reached_by_few": selection.Threshold(-3.0, max_pages=4),
}
PER_HEAD: Mapping[str, Op] = {
    "each_top": selection.TopK(2, per_head=True),
    "each_share": selection.TopP(0.5, per_head=True),
    "each_reached": selection.Threshold(0.5, per_head=True),
}
KEPT = (DType.FLOAT16, DType.INT8, DType.INT4)


class Maker:
    """Nodes of the indexer side."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.k, self.q = self(leaf.FieldRead("k")), self(leaf.Input("q"))
        self.mean = self(reduce.Mean(1), self.k)
        self.dots = self(linear.GeMM(), self.q, self.mean)  # [S, 1, H]
        self.score = self(reduce.Max(2), self.dots)
        self.whole = self(unary.Cast(DType.INT32), self(unary.Add_Mul(0.0, 4.0), self.score))
        self.high = self(compare.Greater(), self.score, self(leaf.Constant(0.5)))
        self.place = self(unary.Cast(DType.FLOAT32), self(position.PageIndex()))

    def __call__(self, op: Op, *inputs: Node) -> Node:
        return make_node(op, inputs, self.scope, "here")

    def spread(self, node: Node) -> Node:
        """A value per row at every page, so that state can hold it."""
        number = self(unary.Cast(DType.FLOAT32), node)
        return self(binary.Add(), number, self(unary.Add_Mul(0.0, 0.0), self.place))


def over_pages(made: Maker) -> dict[str, Node]:
    taps = tuple(((0.5 * tap, 1.0 - tap),) for tap in range(3))
    ranked = made(reduce.ArgMax(0), made.score)
    age = made(binary.Add(), made(position.PageAge()), made(leaf.Constant(-2.0, DType.INT32)))
    return {
        **{name: made(op, made.score) for name, op in OF_SCORES.items()},
        **{f"each_{name}": made(op, made.dots) for name, op in OF_SCORES.items()},
        **{name: made.spread(made(op, made.score)) for name, op in OF_ROWS.items()},
        "softmax_all": made(page_axis.Softmax(0, -1.0, ALL), made.dots),
        "convolved": made(page_axis.Conv1d(taps), made.dots),
        "convolved_all": made(page_axis.Conv1d((((0.5,),), ((0.25,),)), ALL), made.score),
        "int_pooled_max": made(page_axis.PoolPages(Kind.MAX, 1, 1), made.whole),
        "int_pooled_min": made(page_axis.PoolPages(Kind.MIN, 1, 1, ALL), made.whole),
        "int_sums": made(page_axis.CumSum(0, span=ALL), made.whole),
        "int_sum": made.spread(made(reduce.Sum(0), made.whole)),
        "int_arg_max": made.spread(made(reduce.ArgMax(0), made.whole)),
        "some_high": made.spread(made(reduce.Max(0), made.high)),
        "all_high": made.spread(made(reduce.Min(0), made.high)),
        "high_before": made.spread(made(page_axis.ShiftPages(-1, 1.0), made.high)),
        "keys_of_next": made(page_axis.ShiftPages(1), made.k),
        "best_score": made.spread(made(choose.Gather(0), made.score, ranked)),
        "best_keys": made(binary.Add(), made(choose.Gather(0), made.k, ranked), made.k),
        "turned_round": made(choose.Gather(0), made.dots, age),
        "of_rows_across": made.spread(
            made(page_axis.AcrossHeads(Kind.MAX), made(reduce.Sum(0), made.score))
        ),
    }


def chosen(made: Maker) -> dict[str, Node]:
    found = {name: made(op, made.score) for name, op in SELECTIONS.items()}
    found |= {name: made(op, made.dots) for name, op in PER_HEAD.items()}
    tokens = {
        f"tokens_of_{name}": made.spread(made(selection.SelectedTokens(), found[name]))
        for name in ("top", "each_top", "share")
    }
    return {**found, **tokens}


def positions(made: Maker) -> dict[str, Node]:
    ops: tuple[Op, ...] = (
        position.PageIndex(),
        position.PageAge(),
        position.PageCount(),
        position.TokenCount(),
        position.TokenPosition(),
        position.TokenValid(),
        position.ReservedPages(),
        position.StepIndex(),
        position.LayerIndex(),
        position.HeadIndex(),
        position.QueryHeadIndex(),
    )
    return {op.name: made.spread(made(op)) for op in ops}


def per_page(made: Maker) -> dict[str, Node]:
    """Where a value per row meets one per page, and what was learned or kept."""
    where = made(reduce.ArgMax(2), made.mean)
    table = made(leaf.ParameterRead("param.factor"))
    described = made(layout.Reshape(4, 4), made(layout.Concat(2), made.mean, made.mean))
    return {
        "picked": made(choose.Gather(2), made.q, where),
        "joined": made(layout.Concat(1), made.q, made.mean),
        "turned": made(layout.Rope(100.0), made.q, made(position.PageIndex())),
        "crossed": made(linear.Kron((1, 2)), made.mean, made.dots),
        "scored": made(linear.FactorScore(2, 2, 4), made.q, table, described),
        "attention": made(leaf.AttentionMass()),
        "prompt": made(leaf.PromptMass(3)),
    }


PARTS = (over_pages, chosen, lambda made: {**positions(made), **per_page(made)})
"""Values that are computed in one step together."""


@cache
def probe(part: int) -> Graph:
    flow = registry.get("streaming_llm")()
    graph = graph_of(flow, geometry_of(FlowKind.GQA, DType.FLOAT32))
    heads, width = graph.geometry.query_heads, graph.geometry.key_dim
    values = (np.arange(heads * width * 4).reshape(heads, width, 4) % 7 - 3).astype(np.float32)
    kind = ValueType(FORMAT.PARAMETER, Leading.NONE, values.shape, DType.FLOAT32)
    counted = StateVar("counted", _state_type((1, 1), DType.FLOAT32), 2.0)
    parameters = (Parameter("param.factor", kind, 0, values, "factor"),)
    graph = replace(graph, parameters=parameters, states=(counted,))
    made = Maker(graph.scope(Side.INDEXER))
    nodes = PARTS[part](made)
    nodes["counted"] = made(binary.Add(), made(leaf.StateRead("counted")), made.score)
    dtypes = {name: node.type.dtype.computed for name, node in nodes.items()}
    nodes |= {f"kept_{dtype}": made.whole if dtype.is_integer else made.score for dtype in KEPT}
    dtypes |= {f"kept_{dtype}": dtype for dtype in KEPT}
    states = {
        name: StateVar(name, _state_type(node.type.shape, dtypes[name]))
        for name, node in nodes.items()
    }
    writes = tuple(StateWrite(name, node) for name, node in nodes.items())
    graph = replace(graph, states=tuple((states | {"counted": counted}).values()))
    graph = replace(graph, state_writes=writes)
    verify_graph(graph)
    return graph


def _state_type(shape: tuple[int, ...], dtype: DType) -> ValueType:
    return ValueType(FORMAT.PAGED, Leading.PAGES, shape, dtype)


@cache
def outcome(part: int) -> Pair:
    rows = Rows(
        tokens=(42,),
        budget=DefaultBudget(topk=2),
        kv_heads=2,
        state_advance=StateAdvance.EVERY_BLOCK,
    )
    (pair,) = run_steps(probe(part), rows, 1, SMALL)
    return pair


NAMES = [(part, write.target) for part in range(len(PARTS)) for write in probe(part).state_writes]
ZERO = {"LayerIndex", "StepIndex", "attention", "all_high"}
"""Zero everywhere at the first step of the first layer."""


@pytest.mark.parametrize(("part", "name"), NAMES)
def test_a_value_is_that_of_the_reference(part: int, name: str) -> None:
    expected, found = (np.asarray(item, dtype=np.float64) for item in outcome(part).states[name])
    assert np.any(expected) == (name not in ZERO), "the data does not tell a value from nothing"
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
