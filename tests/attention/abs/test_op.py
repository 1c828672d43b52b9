"""Constructors and calls of op objects."""

from typing import Any

import pytest

from tests.attention.flow.making import examine, score
from tilewright.attention import cache, indexer
from tilewright.attention.abs import vTensor
from tilewright.errors import FlowError, OperandError

ANY: Any = indexer  # wrong arguments are what some tests are about


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: indexer.Mean(dim=3), "found dim=3, expected dim 0 or 1 or 2"),
        (lambda: indexer.Mean(dim="1"), "found dim='1'"),
        (lambda: indexer.TopK(0), "found k=0, expected a whole number of at least 1"),
        (lambda: ANY.TopK(2.5), "found k=2.5"),
        (lambda: ANY.TopK(None), "found k=None"),
        (lambda: indexer.approxTopK(1.5), "found tolerate_ratio=1.5"),
        (lambda: indexer.approxTopK("x"), "found tolerate_ratio='x'"),
        (lambda: indexer.topP(0.0), "found p=0.0"),
        (lambda: indexer.topP(1.1), "found p=1.1"),
        (lambda: indexer.topP(0.9, max_blocks=2, min_blocks=3), "found max_pages=2"),
        (lambda: indexer.threshold(float("nan")), "found value=nan"),
        (lambda: indexer.Kron(dim=3), r"found dim=\(3,\)"),
        (lambda: indexer.Kron(dim=()), r"found dim=\(\)"),
        (lambda: indexer.Kron(dim=(1, 1)), r"found dim=\(1, 1\)"),
        (lambda: indexer.Normalize(dim=1), "found dim=1"),
        (lambda: ANY.Conv1d(3), "found 3, expected nested lists"),
        (lambda: indexer.Conv1d([[[1.0]]], dim=1), "found dim=1"),
        (lambda: indexer.Reshape(2, 1, 1), "found batch_dim=2, expected -1"),
        (lambda: indexer.Reshape(-1, 0, 4), "found rows=0"),
        (lambda: indexer.MaskSlice(3, 2, 2), "found end=2"),
        (lambda: indexer.MaskSlice(0, 2, 0), "found dim=0, expected dim 1 or 2"),
        (lambda: indexer.Clamp(2.0, 1.0), "expected low <= high"),
        (lambda: indexer.PromptMass(0), "found window=0"),
        (lambda: indexer.every(0), "found n=0"),
        (lambda: indexer.sink(-1), "whole numbers of pages"),
        (lambda: cache.MeanInterleave(dim=1, k=0), "found k=0"),
        (lambda: indexer.Relu(gamma=1.0), "unexpected keyword argument 'gamma'"),
    ],
)
def test_a_wrong_attribute_is_refused_where_it_is_written(make: Any, found: str) -> None:
    with pytest.raises(OperandError, match=found) as caught:
        make()
    assert caught.value.source.startswith("test_op.py:")


def in_flow(use: Any) -> None:
    def forward(q: Any, o: Any, cache_: Any, ctx: Any) -> None:
        use(q, o, cache_, ctx)
        o.select(score(q, cache_).topk())

    examine(forward)


@pytest.mark.parametrize(
    ("use", "found"),
    [
        (lambda q, _o, _c, ctx: indexer.GeMM()(q, ctx=ctx), "found 1 operands, expected 2: x, y"),
        (lambda q, _o, _c, ctx: indexer.Relu()(q, size=2, ctx=ctx), r"found arguments \['size'\]"),
        (
            lambda q, _o, c, ctx: indexer.GeMM()(q, c["centroids"].T, ctx=ctx),
            r"GeMM operand y: .* expected a last axis of 16",
        ),
        (
            lambda q, _o, c, ctx: indexer.GeMV()(q, c["centroids"], ctx=ctx),
            "expected one row; use GeMM",
        ),
        (lambda q, _o, _c, ctx: indexer.Load()(q, ctx=ctx), "expected a cache field"),
        (lambda q, _o, c, ctx: indexer.Save()(score(q, c), q, ctx=ctx), "expected a cache field"),
        (
            lambda q, _o, c, ctx: indexer.topK()(score(q, c), o=vTensor(), ctx=ctx),
            "expected the o of the method",
        ),
        (
            lambda _q, _o, c, ctx: indexer.Softmax()(c["centroids"], ctx=ctx),
            "expected a value in format RAGGED",
        ),
        (
            lambda q, _o, _c, ctx: indexer.MaskSlice(0, 99, 2)(q, ctx=ctx),
            "expected at least end=99 entries on axis 2",
        ),
        (
            lambda q, _o, c, ctx: indexer.Conv1d([[[1.0, 2.0]]])(score(q, c), ctx=ctx),
            "taps that are not all 1 x 1",
        ),
        (lambda q, _o, _c, _x: q + (q > 0), "found BATCHED bool .*, expected numbers"),
        (lambda q, o, _c, _x: o.select(q > 0), r"expected bool \[S, 1, 1\] or \[S, 1, 4\]"),
        (lambda _q, o, _c, _x: o.select(3), "found a int, expected a value of this method"),
        (lambda _q, o, _c, _x: o.combine([]), "found no branch"),
        (lambda q, o, c, _x: o.estimate(score(q, c).topk(), q, q), "terminal operand logits"),
    ],
)
def test_a_wrong_call_is_refused_with_flow_method_and_line(use: Any, found: str) -> None:
    with pytest.raises(FlowError, match=found) as caught:
        in_flow(use)
    assert caught.value.flow == "made"
    assert caught.value.source.startswith("test_op.py:")


def test_operands_may_be_given_by_name() -> None:
    in_flow(lambda q, _o, c, ctx: indexer.GeMM()(y=c["centroids"], x=q, ctx=ctx))


def test_an_op_outside_a_flow_says_where_ops_belong() -> None:
    with pytest.raises(OperandError, match="a call outside a trace"):
        indexer.PageIndex()()


def test_weights_of_a_convolution_are_rounded_to_their_element_type() -> None:
    def first(**more: Any) -> float:
        made: Any = indexer.Conv1d([[[0.1]], [[1.0 / 3.0]]], **more)
        return float(made.op.weight[0][0][0])

    assert first() == 0.10009765625
    assert first(dtype="float16") == 0.0999755859375
    assert first(dtype="float32") == 0.10000000149011612


def test_a_factor_that_would_have_no_effect_is_refused() -> None:
    assert indexer.Multiply(1.0, beta=1).op == indexer.Multiply().op
    with pytest.raises(
        OperandError, match=r"found alpha=3, expected nothing.*Add_Mul\(beta="
    ) as at:
        indexer.Multiply(3)
    assert at.value.source.startswith("test_op.py:")
    with pytest.raises(OperandError, match=r"found beta=5\.0"):
        cache.Maximum(beta=5.0)
