"""What the generator tells of bytes is what a step moves, ops over all pages included."""

from functools import cache

import pytest

from tests.attention.machine.pair import graph_of, kv_heads_of, plan_of, small_machine
from tilewright.attention.backends.machine import RowPlacement, Uniform
from tilewright.attention.graph import DType
from tilewright.studies.decode.record import attention_figures
from tilewright.studies.decode.step import DecodeStep, simulate_step

OTHERS = ("page completion", "launch")  # no part of a compiled step


@cache
def moved(name: str, placement: RowPlacement) -> tuple[int, int]:
    """Bytes that were told of a step, and bytes at the memories."""
    graph = graph_of(name, DType.FLOAT16, page_size=16, width=64)
    step = DecodeStep(
        machine=small_machine(),
        graph=graph,
        contexts=(16_384,),
        kv_heads=kv_heads_of(graph),
        plan=plan_of(64),
        placement=placement,
        selection=Uniform(1),
    )
    figures = attention_figures(small_machine(), simulate_step(step))
    found = sum(stage.bytes for stage in figures.stages if stage.name not in OTHERS)
    return sum(figures.predicted_bytes.values()), found


@pytest.mark.parametrize(
    "name",
    [
        "quest",  # nothing but scores
        "gqa_block_sparse_attention",  # softmax over pages
        "centered_block_sparse_attention",  # a mean over pages
        "quest_mean_query",  # all KV heads of a request
        "infllm_v2",  # pools of neighbouring pages
        "running_avg_block_sparse",  # state, and a selection apart
    ],
)
def test_bytes_are_told_within_15_percent(name: str) -> None:
    predicted, found = moved(name, RowPlacement.HEAD)
    assert predicted == pytest.approx(found, rel=0.15)


@pytest.mark.parametrize("placement", [RowPlacement.STRIPE, RowPlacement.CUBE])
def test_bytes_of_rows_that_are_divided_are_told_too(placement: RowPlacement) -> None:
    predicted, found = moved("quest", placement)
    assert predicted == pytest.approx(found, rel=0.15)
