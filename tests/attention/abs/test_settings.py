"""Attributes of op objects, and the names of Vortex's Save and Load."""

from typing import Any

import pytest

from tests.attention.flow.making import examine, score
from tilewright.attention import cache as cache_ops
from tilewright.attention import indexer
from tilewright.attention.abs import FORMAT, Value
from tilewright.attention.utils import Schedule
from tilewright.errors import FlowError, OperandError


def test_an_attribute_counts_for_the_calls_after_it_is_set() -> None:
    softmax: Any = indexer.Softmax(dim=0, scale=0.5)
    seen: list[float] = []

    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        values = score(q, cache)
        for scale in (None, 2, 4.0):
            if scale is not None:
                softmax.scale = scale
            values = softmax(values, ctx=ctx)
            seen.append(values.node.op.scale)
        o.select(values.topk())

    examine(forward)
    assert seen == [0.5, 2.0, 4.0]
    assert softmax.scale == 4.0


@pytest.mark.parametrize(
    ("op", "name", "value"),
    [
        (indexer.Add(), "alpha", 2.0),
        (indexer.Sigmoid(), "beta", -1.0),
        (indexer.Mean(dim=1), "dim", 2),
        (indexer.TopK(3), "k", 5),
        (indexer.approxTopK(), "tolerate_ratio", 0.5),
        (indexer.MaskSlice(0, 4, 2), "end", 8),
        (cache_ops.Softmax(), "scale", 0.5),
        (cache_ops.MeanInterleave(), "k", 4),
    ],
)
def test_a_set_attribute_is_that_of_the_definition(op: Any, name: str, value: float) -> None:
    setattr(op, name, value)
    assert getattr(op.op, name) == value
    assert getattr(op, name) == value


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda: setattr(indexer.Softmax(), "scal", 2.0), "'scal'.*did you mean 'scale'"),
        (lambda: setattr(indexer.Softmax(), "temperature", 2.0), "one of dim, scale, span"),
        (lambda: setattr(indexer.Softmax(), "scale", "big"), "scale='big', expected a number"),
        (lambda: setattr(indexer.Softmax(), "scale", True), "scale=True"),
        (lambda: setattr(indexer.Mean(), "dim", 1.0), "dim=1.0, expected dim 0 or 1 or 2"),
        (lambda: setattr(indexer.Save(), "alpha", 1.0), "no attribute: it takes none"),
        (lambda: setattr(indexer.Multiply(), "alpha", 3.0), "Multiply has no factors"),
        (lambda: setattr(cache_ops.Fill(), "alpha", "x"), "alpha='x', expected a number"),
        (lambda: setattr(indexer.topK(), "per_head", 1), "per_head=1, expected True or False"),
    ],
)
def test_a_wrong_attribute_is_refused_where_it_is_set(change: Any, found: str) -> None:
    with pytest.raises(OperandError, match=found) as caught:
        change()
    assert caught.value.source.startswith("test_settings.py:")


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: indexer.Save(1, 2), "too many positional arguments"),
        (lambda: indexer.Load("x"), "too many positional arguments"),
        (lambda: indexer.GeMM(3), "too many positional arguments"),
        (lambda: indexer.topK(8), "too many positional arguments"),
        (lambda: indexer.GTTopK(8), "too many positional arguments"),
        (lambda: indexer.Transpose(dim=1), "unexpected keyword argument 'dim'"),
        (lambda: indexer.Softmax(scale="0.5"), "scale='0.5', expected a number"),
        (lambda: indexer.Add("2"), "alpha='2'"),
        (lambda: indexer.Kron(dim="rows"), "dim="),
        (lambda: indexer.Normalize(dim=False), "dim=False"),
        (lambda: indexer.Softmax(1), r"dim=1, expected dim=0; write x.softmax\(1\)"),
        (lambda: indexer.Softmax(dim=True), "dim=True"),
        (lambda: cache_ops.Fill("x"), "alpha='x'"),
        (lambda: indexer.Cast("nothing"), "'nothing'"),
        (lambda: indexer.FactorScore([[1.0]], 1, 1, 1), "Wq of type list, expected a Parameter"),
        (lambda: indexer.GTGroupScore(scale="x"), "scale='x'"),
    ],
)
def test_arguments_that_an_op_does_not_take_are_refused(make: Any, found: str) -> None:
    with pytest.raises(OperandError, match=found) as caught:
        make()
    assert caught.value.source.startswith("test_settings.py:")


def test_an_op_of_ones_own_has_any_attributes() -> None:
    class Doubled(indexer.Add):
        def __init__(self, note: str) -> None:
            super().__init__(alpha=2.0)
            self.note = note

    made = Doubled("mine")
    assert (made.note, made.alpha) == ("mine", 2.0)


def test_save_and_load_register_as_vortex_says() -> None:
    load, save = indexer.Load(), indexer.Save()
    assert (load.output_format, load.output_buffer, save.output_format) == (None, None, None)
    assert (load.schedule, save.schedule) == (Schedule.W, Schedule.W)

    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        tensors, ops = len(ctx.tensor_list), len(ctx.op_list)
        before = load.profile(cache["running"], ctx)
        assert before.tensor_id == tensors
        assert ctx.tensor_list[tensors].tensor_id == tensors
        assert ctx.output_tensor_to_op_list[tensors] == ops
        assert ctx.op_list[ops] is load
        assert ctx.op_to_input_tensor_list[ops] == [cache["running"].tensor_id]
        assert ctx.op_to_output_tensor_list[ops] == [before.tensor_id]
        assert (load.output_format, load.output_buffer) == (FORMAT.RAGGED, before)
        assert before.dtype == ctx.vortex_dtype
        assert before.shape == (0, 1, 1)
        value = before + score(q, cache)
        ops = len(ctx.op_list)
        target = save.profile(value, cache["running"], ctx)
        assert target.field == "running"
        assert save.output_format is FORMAT.PAGED
        assert ctx.op_list[ops] is save
        assert ctx.side_effect_op_ids == [ops]
        assert ctx.op_to_input_tensor_list[ops] == [value.tensor_id]
        assert ctx.op_to_output_tensor_list[ops] == [target.tensor_id]
        assert ctx.output_tensor_to_op_list[target.tensor_id] == -1
        indexer.topK()(value, o, ctx)

    examine(forward, fields={"centroids": (1, 16), "running": (1, 1)})
    assert indexer.Save._impl_map == {FORMAT.RAGGED: FORMAT.PAGED}
    assert indexer.Load._impl_map == {FORMAT.PAGED: FORMAT.RAGGED}


def test_a_write_to_the_lists_of_a_context_is_refused() -> None:
    def forward(_q: Any, _o: Any, _cache: Any, ctx: Any) -> None:
        ctx.op_list.append(object())

    with pytest.raises(FlowError, match="a write to it, expected reads; call ops of the library"):
        examine(forward)


def test_locations_and_contexts_may_stand_last_by_position() -> None:
    def side(cache: Any, loc: Any, ctx: Any) -> None:
        cache_ops.Mean(1)(cache["k"], cache["centroids"], loc, ctx)

    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        mean = indexer.Mean(dim=1)(q, ctx)
        assert isinstance(mean, Value)
        indexer.topK()(indexer.GeMM()(mean, cache["centroids"], ctx), o, ctx)

    assert examine(forward, side).warnings == ()
