"""What ready flows take: weights, bases, limits."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.attention.flows.case import (
    QUERY_HEADS,
    WIDTH,
    ByHead,
    Case,
    Expected,
    at_moments,
    decodes_of,
    reading,
    request_of,
    scored,
)
from tests.attention.flows.cases import CASES
from tests.attention.flows.executor import open_session, run_request, run_session
from tests.attention.flows.table import drawn, seer_sizes
from tests.attention.oracle_flows import branches, centroid, latent, learned, pruned, stateful
from tests.attention.oracle_flows.decode import Array, Decode, Moment, attend
from tilewright.attention import flows
from tilewright.attention.flow import trace_flow
from tilewright.attention.flows.learned import Weights
from tilewright.attention.planner import StateAdvance, parse_policy
from tilewright.errors import FlowInitError, TerminalError


def pages_of(case: Case, seed: int = 6) -> list[list[list[int]]]:
    """Of each step, of each head."""
    graph = trace_flow(case.build(), case.geometry)
    return [outcome.pages for outcome in run_session(graph, case, request_of(case, seed))]


def expected_pages(case: Case, seed: int = 6) -> list[list[list[int]]]:
    request = request_of(case, seed)
    assert request.prompt_queries is not None
    heads = case.paper(decodes_of(case, request), request.prompt_queries)
    return [[head[step].pages[0] for head in heads] for step in range(len(heads[0]))]


def test_twilight_prunes_what_any_flow_has_chosen() -> None:
    base = centroid.venergy_gated_centroid
    case = Case(
        "twilight",
        lambda: flows.Twilight(p=0.5, base=flows.VEnergyGatedCentroid()),
        reading(partial(pruned.twilight, base=base, share=0.5)),
        budget=6,
    )
    assert pages_of(case) == expected_pages(case)


def test_twilight_prunes_a_choice_that_remembers() -> None:
    """The base's state advances although its choice is cut down."""

    def paper(decodes: list[Decode], _: Array) -> ByHead:
        out: ByHead = []
        for decode in decodes:
            steps = []
            for step, found in enumerate(stateful.running_avg_block_sparse(decode)):
                moment = decode.moment(step)
                pages = pruned.pruned_pages(moment, found.scores, 0.5)
                steps.append(Expected([pages], attend(moment, pages)[0]))
            out.append(steps)
        return out

    build = partial(flows.Twilight, p=0.5, base="running_avg_block_sparse")
    case = Case("twilight", build, paper, budget=5)
    assert pages_of(case) == expected_pages(case)


def test_twilight_prunes_head_by_head_where_heads_choose_for_themselves() -> None:
    def rule(moment: Moment) -> tuple[list[list[int]], Array]:
        return pruned.twilight_by_head(moment, branches.moba(moment)[0], share=0.6)

    case = Case("twilight", partial(flows.Twilight, p=0.6, base="moba"), at_moments(rule))
    graph = trace_flow(case.build(), case.geometry)
    request = request_of(case, 6)
    assert request.prompt_queries is not None
    wanted = case.paper(decodes_of(case, request), request.prompt_queries)
    for step, outcome in enumerate(run_session(graph, case, request)):
        for head, steps in enumerate(wanted):
            np.testing.assert_allclose(outcome.out[head], steps[step].out, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("base", ["nsa", "retro_infer"])
def test_twilight_refuses_a_base_that_does_more_than_select(base: str) -> None:
    case = Case("twilight", partial(flows.Twilight, base=base), scored(centroid.centroids))
    with pytest.raises(TerminalError, match="choose a base that only selects"):
        trace_flow(case.build(), case.geometry)


def test_twilight_refuses_a_base_of_the_other_kind() -> None:
    with pytest.raises(FlowInitError, match="found a base of kind mla, expected kind gqa"):
        flows.Twilight(base=flows.QuestMLA())


def test_twilight_with_all_of_the_mass_is_its_base() -> None:
    pruned_flow = Case("twilight", partial(flows.Twilight, p=1.0), scored(centroid.centroids))
    base = Case("quest", flows.Quest, scored(centroid.centroids))
    assert pages_of(pruned_flow) == pages_of(base)


def test_a_share_never_takes_more_than_the_plan_allows() -> None:
    case = Case(
        "frozen_dynamic_top_p",
        partial(flows.FrozenDynamicTopP, p=0.95),
        reading(partial(pruned.frozen_dynamic_top_p, share=0.95, count=4, temperature=1.0)),
        budget=2,
    )
    assert pages_of(case) == expected_pages(case)
    assert {len(pages) for step in pages_of(case) for pages in step} == {4}


@pytest.mark.parametrize("name", ["h2o", "tova", "snapkv"])
def test_a_page_that_was_dropped_stays_dropped_when_the_budget_grows(name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    graph = trace_flow(case.build(), case.geometry)
    request = request_of(case, 8)
    session = open_session(
        graph,
        case,
        request,
        budget=parse_policy("4 + 2 * step"),
        state_advance=StateAdvance.EVERY_BLOCK,  # else a row that fits its budget is dense
    )
    dropped: list[set[int]] = [set() for _ in range(case.num_kv_heads)]
    for outcome in run_request(session, graph, request, "r"):
        for head, pages in enumerate(outcome.pages):
            assert not dropped[head] & set(pages)
            dropped[head] |= set(range(max(pages))) - set(pages)
    assert all(dropped)


def test_a_gate_may_decide_by_a_threshold() -> None:
    tables = drawn(seer_sizes())
    case = Case(
        "seer_attention",
        lambda: flows.SeerAttention(gate_width=6, threshold=0.1, weights=tables),
        reading(
            partial(
                learned.seer_threshold,
                query_weight=tables["query"],
                key_weight=tables["key"],
                threshold=0.1,
            )
        ),
    )
    found = pages_of(case)
    assert found == expected_pages(case)
    assert len({len(pages) for step in found for pages in step}) > 1


def test_infllm_reads_short_sequences_whole() -> None:
    case = Case("infllm_v2", partial(flows.InfLLMv2, dense_below=1000), scored(centroid.centroids))
    assert all(pages == list(range(max(pages) + 1)) for step in pages_of(case) for pages in step)


def test_without_weights_the_learned_mixture_is_the_sum_over_heads() -> None:
    identity = np.tile(np.eye(WIDTH), (1, QUERY_HEADS))
    case = Case(
        "learned_block_sparse_mla",
        flows.LearnedBlockSparseMLA,
        scored(partial(latent.learned_block_sparse_mla, weight=identity)),
    )
    assert pages_of(case) == expected_pages(case)
    assert flows.LearnedBlockSparseMLA().weights_label == "identity, the sum over heads"


def test_drawn_weights_repeat_with_their_seed_and_differ_without() -> None:
    one, two = Weights(None, seed=1), Weights(None, seed=1)
    other = Weights(None, seed=2)
    table = one.matrix("key", 3, 4)
    assert one.matrix("key", 3, 4) is table
    assert np.array_equal(table.value, two.matrix("key", 3, 4).value)
    assert not np.array_equal(table.value, other.matrix("key", 3, 4).value)
    assert not np.array_equal(table.value, one.matrix("query", 3, 4).value)


def test_given_weights_may_have_a_table_for_each_layer() -> None:
    layered = {name: np.stack([table, -table]) for name, table in drawn(seer_sizes()).items()}
    flow = flows.SeerAttention(gate_width=6, weights=layered)
    case = Case("seer_attention", lambda: flow, scored(centroid.centroids))
    graph = trace_flow(flow, case.geometry)
    assert {item.num_layers for item in graph.parameters} == {2}


def test_a_missing_table_is_named() -> None:
    weights = Weights({"query": np.zeros((2, 2))})
    with pytest.raises(FlowInitError, match="expected a table 'key' of shape"):
        weights.matrix("key", 2, 2)


@pytest.mark.parametrize("shape", [(2, 3), (4,), (1, 1, 3, 2)])
def test_a_table_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    weights = Weights({"query": np.zeros(shape)})
    with pytest.raises(FlowInitError, match="weights must fit the sizes of the model"):
        weights.matrix("query", 3, 2)


def test_a_table_by_head_needs_its_layers() -> None:
    weights = Weights({"query": np.zeros((3, 4, 2))})
    with pytest.raises(FlowInitError, match=r"expected \[layers\]"):
        weights.by_head("query", 3, 4, 2)


@pytest.mark.parametrize(
    "name",
    [
        "infllm_v2",
        "lserve",
        "lserve_centroid_mla",
        "lserve_centroid_sparse_attention",
        "lserve_sparse_attention",
        "nsa",
        "rope_unaware_lserve_centroid_mla",
    ],
)
def test_pages_that_cannot_be_cut_are_refused(name: str) -> None:
    case = replace(next(case for case in CASES if case.name == name), block_size=6)
    with pytest.raises(FlowInitError, match=r"found pages of 6 tokens, expected a multiple of"):
        trace_flow(case.build(), case.geometry)


@pytest.mark.parametrize(
    ("flow", "text"),
    [
        (flows.DoubleSparsity(labels=[3, 16]), r"found labels \[16\], expected channels 0 to 15"),
        (flows.DoubleSparsity(channels=17), "found 17 channels, expected at most 16"),
    ],
)
def test_labels_beyond_the_head_are_refused(flow: flows.DoubleSparsity, text: str) -> None:
    case = Case("double_sparsity", lambda: flow, scored(centroid.centroids))
    with pytest.raises(FlowInitError, match=text):
        trace_flow(flow, case.geometry)


def test_drawn_labels_are_channels_of_the_head() -> None:
    labels = flows.DoubleSparsity(channels=5, seed=3).labels(16)
    assert len(set(labels)) == 5
    assert set(labels) <= set(range(16))
    assert flows.DoubleSparsity(channels=5, seed=4).labels(16) != labels
