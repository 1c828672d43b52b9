"""Drawn keys of both kinds of attention: what dense attention gives, and that needles are found."""

from functools import cache

import numpy as np
import pytest

from tilewright.attention.graph import FlowKind
from tilewright.attention.planner import Reserved
from tilewright.evaluation.source.base import Case, SourceSpec
from tilewright.evaluation.source.synthetic import SyntheticSource
from tilewright.evaluation.stream import AttentionSamples, replay_flow
from tilewright.serving.model_flow import plan_pages, trace_for_model

KINDS = [FlowKind.GQA, FlowKind.MLA]
MLA_FLOWS = ["quest_mla", "rope_aware_block_sparse_mla", "streaming_llm_mla", "random_mla"]


def source(kind: FlowKind) -> SyntheticSource:
    return SyntheticSource(SourceSpec(context=120, steps=3, cases=1, page_size=8, kind=kind))


@cache
def drawn(kind: FlowKind, index: int = 0) -> Case:
    return source(kind).draw(index, kept_queries=0)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_those_of_softmax_attention(kind: FlowKind) -> None:
    stream, geometry = drawn(kind).stream, source(kind).geometry
    for layer in range(stream.num_layers):
        keys = np.concatenate([np.asarray(stream.context.keys(layer)), stream.keys[:, layer]])
        values = keys[..., : geometry.value_dim]
        if stream.values is not None:
            before = np.asarray(stream.context.values(layer))
            values = np.concatenate([before, stream.values[:, layer]])
        for step in range(3):
            seen = 120 + step + 1
            logits = np.einsum("hgd,thd->hgt", stream.queries[step, layer], keys[:seen])
            weights = np.exp(logits.astype(np.float64) * stream.scale)
            weights /= weights.sum(axis=-1, keepdims=True)
            expected = np.einsum("hgt,thd->hgd", weights, values[:seen])
            assert np.allclose(stream.outputs[step, layer], expected, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_needle_has_about_as_much_mass_as_all_other_keys(kind: FlowKind) -> None:
    stream = drawn(kind).stream
    found = [
        stream.page_mass[one.step, one.layer, one.head, :, one.position // 8].mean()
        for one in stream.needles
    ]
    assert len(found) == 3 * 2 * source(kind).num_kv_heads
    assert 0.4 < np.mean(found) < 0.9


def test_logits_of_latents_scatter_as_those_of_keys_do() -> None:
    for kind in KINDS:
        stream = drawn(kind).stream
        keys = np.asarray(stream.context.keys(0))
        logits = stream.scale * np.einsum("hgd,thd->hgt", stream.queries[0, 0], keys)
        assert 0.6 < float(np.median(np.abs(logits))) / 0.6745 < 1.6  # of a normal of deviation 1


def replayed(flow: str, budget: int, index: int) -> AttentionSamples:
    graph = trace_for_model(flow, source(FlowKind.MLA).geometry)[1]
    return replay_flow(drawn(FlowKind.MLA, index).stream, graph, plan_pages(budget, Reserved()))


@pytest.mark.parametrize("flow", MLA_FLOWS)
def test_no_rule_over_latents_has_more_mass_than_the_oracle(flow: str) -> None:
    for index, budget in ((0, 3), (1, 6)):
        found, best = replayed(flow, budget, index), replayed("oracle_mla", budget, index)
        assert all(mass <= most + 1e-6 for mass, most in zip(found.mass, best.mass, strict=True))
    whole = replayed(flow, 99, 0)
    assert whole.output_error == (0.0,) * 3
    assert whole.mass == pytest.approx((1.0,) * 3)


def test_pages_of_the_first_step_are_those_that_mass_was_counted_on() -> None:
    found, stream = replayed("quest_mla", 4, 0), drawn(FlowKind.MLA).stream
    mass = np.mean(
        [
            stream.page_mass[0, layer, head][:, list(pages)].sum(-1).mean()
            for layer, heads in enumerate(found.first_pages)
            for head, pages in enumerate(heads)
        ]
    )
    assert all(len(pages) == 4 for heads in found.first_pages for pages in heads)
    assert found.mass[0] == pytest.approx(mass)
