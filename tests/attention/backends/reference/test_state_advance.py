"""Which blocks' state a step advances: by the rule of Vortex, or every block, if asked to."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.attention.backends.reference.sample import (
    GROUP,
    HEADS,
    LAYERS,
    PAGE,
    Branches,
    Driver,
    geometry_of,
)
from tilewright.attention.abs import Value
from tilewright.attention.backends.reference import Session, SessionSpec
from tilewright.attention.flow import trace_flow
from tilewright.attention.flows import LServe
from tilewright.attention.graph import Graph
from tilewright.attention.planner import (
    Budget,
    DefaultBudget,
    PerHead,
    PerLayer,
    PlanSpec,
    Reserved,
    StateAdvance,
    ThresholdBudget,
    TopPBudget,
    parse_policy,
)
from tilewright.validation.vortex.state import WIDTH, state_graph
from tilewright.validation.vortex.state_model import SHAPES, StateCase, StateRow, expected_states

FEW = settings(max_examples=settings().max_examples // 4)


@st.composite
def cases(draw: st.DrawFn) -> StateCase:
    """Short rows, many of which cross from all of their blocks to some."""
    return StateCase(
        "drawn",
        first=draw(st.integers(0, 3)),
        last=draw(st.integers(1, 3)),
        topk=draw(st.integers(1, 4)),
        ratio=draw(st.sampled_from((0.0, 0.3, 0.5, 0.8, 1.0))),
        prompts=(draw(st.integers(1, 40)),),
        block_size=draw(st.integers(1, 5)),
        steps=draw(st.integers(1, 12)),
    )


def run_case(case: StateCase, graph: Graph, row: StateRow, plan: PlanSpec) -> list[Any]:
    """States [blocks] of one row behind each step."""
    pages = case.num_blocks(len(row.keys))
    session = Session(graph, SessionSpec(num_kv_heads=1, num_pages=pages, plan=plan))
    keys, (prompt,) = row.keys[:, None].astype(np.float32), case.prompts
    session.admit("a", range(prompt))
    step = session.begin({"a": range(prompt)}, prompt=True)
    step.write(0, "a", keys[:prompt], keys[:prompt])
    step.finish()
    found = []
    for index in range(case.steps):
        step = session.begin({"a": [0]})
        token = keys[prompt + index : prompt + index + 1]
        step.write(0, "a", token, token)
        step.attend(0, {"a": row.queries[index][None, None].astype(np.float32)})
        step.finish()
        found.append(np.asarray(session.state("a", 0, "running"))[0, :, 0, 0])
    return found


def row_of(case: StateCase, seed: int) -> StateRow:
    generator = np.random.default_rng(seed)
    return StateRow(
        generator.normal(size=(case.prompts[0] + case.steps, WIDTH)).astype(np.float32),
        generator.normal(size=(case.steps, GROUP, WIDTH)).astype(np.float32),
    )


def plan_of(case: StateCase, advance: StateAdvance = StateAdvance.VORTEX) -> PlanSpec:
    return PlanSpec(
        budget=DefaultBudget(case.topk, case.ratio),
        reserved=Reserved(case.first, case.last),
        state_advance=advance,
    )


@FEW
@given(case=cases(), shape=st.sampled_from(sorted(SHAPES)), seed=st.integers(0, 2**32 - 1))
def test_state_follows_the_recurrence_of_vortex(case: StateCase, shape: str, seed: int) -> None:
    row = row_of(case, seed)
    found = run_case(case, state_graph(shape, case.block_size), row, plan_of(case))
    for state, wanted in zip(found, expected_states(case, row, SHAPES[shape]), strict=True):
        np.testing.assert_allclose(state, wanted, rtol=1e-4, atol=1e-5)


def test_the_other_rule_gives_another_state() -> None:
    case = StateCase("crosses", first=1, last=2, topk=2, ratio=0.0, prompts=(14,))
    row, graph = row_of(case, 1), state_graph("scores", case.block_size)
    vortex = run_case(case, graph, row, plan_of(case))
    every = run_case(case, graph, row, plan_of(case, StateAdvance.EVERY_BLOCK))
    unlike = [not np.allclose(a, b) for a, b in zip(vortex, every, strict=True)]
    assert all(unlike[2:])  # the state of the first steps, in which the row fits, is never made up
    assert [np.count_nonzero(state) for state in vortex] == [0] * 6 + [4, 4, 4, 4, 5, 5]
    assert [np.count_nonzero(state) for state in every] == [3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6]


def advanced(budget: Budget, num_blocks: int, reserved: Reserved | None = None) -> list[list[bool]]:
    """Whether each block of each head and layer has another state behind a step than before."""
    plan = PlanSpec(budget=budget, reserved=reserved or Reserved(1, 2))
    driver = Driver("running", plan=plan)
    driver.start("a", list(range(PAGE * num_blocks - 2)))
    layers = range(LAYERS)
    before = [np.asarray(driver.session.state("a", layer, "running")) for layer in layers]
    driver.decode({"a": [1]})
    after = [np.asarray(driver.session.state("a", layer, "running")) for layer in layers]
    changed = [(a != b)[..., 0, 0] for a, b in zip(before, after, strict=True)]
    found: list[list[bool]] = np.concatenate(changed).tolist()
    return found


COVERED = [True, True, True, True, True, True, False, False]
WAITS = [False] * 8


@pytest.mark.parametrize(
    ("budget", "rows"),
    [
        (DefaultBudget(4), [COVERED] * 4),
        (DefaultBudget(5), [WAITS] * 4),  # 5 + 1 + 2 blocks are all that there are
        (DefaultBudget(1, ratio=1.0), [WAITS] * 4),
        (PerHead({1: DefaultBudget(9)}, DefaultBudget(1)), [COVERED, WAITS] * 2),
        (PerLayer({0: DefaultBudget(9)}, DefaultBudget(1)), [WAITS, WAITS, COVERED, COVERED]),
        (TopPBudget(1.0), [COVERED] * 4),  # scores decide, whatever they decide
        (TopPBudget(0.5, at_least=8), [WAITS] * 4),
        (ThresholdBudget(-math.inf), [COVERED] * 4),
        (ThresholdBudget(0.0, at_least=8), [WAITS] * 4),
        (parse_policy("7"), [COVERED] * 4),
    ],
)
def test_a_row_that_selects_advances_all_blocks_but_the_reserved_last_ones(
    budget: Budget, rows: list[list[bool]]
) -> None:
    assert advanced(budget, 8) == rows


def test_state_outlives_steps_in_which_a_row_fits() -> None:
    """A budget for all blocks at odd steps: the state of even steps is found again."""
    plan = PlanSpec(budget=parse_policy("n_blocks if step % 2 else 4"))
    driver = Driver("running", plan=plan)
    driver.start("a", list(range(30)))
    states = []
    for token in range(4):
        driver.decode({"a": [token]})
        states.append(np.asarray(driver.session.state("a", 0, "running"))[:, :7])
    assert np.array_equal(states[0], states[1])
    assert not np.array_equal(states[1], states[2])
    assert np.array_equal(states[2], states[3])


class KeptBranches(Branches):
    """Gated branches that also count how often a page was looked at."""

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
        return {**super().create_cache(block_size, head_dim), "count": (1, 1)}

    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        super().forward_indexer(q, o, cache, ctx)
        cache["count"] = cache["count"] + 1.0


def test_a_head_that_fits_is_dense_beside_one_that_selects_through_gates() -> None:
    """Heads by their own budgets give what they give under that budget for both."""
    graph = trace_flow(KeptBranches(), geometry_of(KeptBranches()), name="kept")
    whole, few = DefaultBudget(99), DefaultBudget(2)
    generator = np.random.default_rng(3)
    keys = generator.normal(size=(31, HEADS, graph.geometry.key_dim)).astype(np.float32)
    query = generator.normal(size=(1, HEADS, GROUP, graph.geometry.key_dim)).astype(np.float32)
    outputs, counts, pages = [], [], []
    for budget in (whole, few, PerHead({1: whole}, few)):
        spec = SessionSpec(num_kv_heads=HEADS, num_pages=16, plan=PlanSpec(budget=budget))
        session = Session(graph, spec)
        session.admit("a", range(30))
        step = session.begin({"a": range(30)}, prompt=True)
        step.write(0, "a", keys[:30], keys[:30])
        step.finish()
        step = session.begin({"a": [0]})
        step.write(0, "a", keys[30:], keys[30:])
        found = step.attend(0, {"a": query})["a"]
        step.finish()
        outputs.append(np.asarray(found.output)[0])
        counts.append(np.asarray(session.state("a", 0, "count"))[..., 0, 0])
        pages.append([found.pages(0, head).tolist() for head in range(HEADS)])
    assert np.array_equal(outputs[2][0], outputs[1][0])
    np.testing.assert_allclose(outputs[2][1], outputs[0][1], rtol=1e-6)
    assert pages[2] == [pages[1][0], pages[0][1]]
    assert counts[2].tolist() == [[1.0] * 7 + [0.0], [0.0] * 8]


def test_a_flow_that_only_reuses_a_choice_keeps_it_as_before() -> None:
    """What `every` remembers is no Save: complete pages keep the choice, the row fits or not."""
    graph = trace_flow(LServe(every=2), replace(geometry_of(LServe()), page_size=16), name="lserve")
    spec = SessionSpec(num_kv_heads=1, num_pages=8, plan=PlanSpec(budget=DefaultBudget(9)))
    session = Session(graph, spec)
    keys = np.ones((50, 1, graph.geometry.key_dim), np.float32)
    session.admit("a", range(49))
    step = session.begin({"a": range(49)}, prompt=True)
    step.write(0, "a", keys[:49], keys[:49])
    step.finish()
    step = session.begin({"a": [0]})
    step.write(0, "a", keys[49:], keys[49:])
    step.attend(0, {"a": np.ones((1, 1, GROUP, graph.geometry.key_dim), np.float32)})
    step.finish()
    kept = np.asarray(session.state("a", 0, "selection.0"))[0, :, 0, 0]
    assert kept.tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("advance", "scored"), [(StateAdvance.VORTEX, 6), (StateAdvance.EVERY_BLOCK, 8)]
)
def test_counters_tell_the_pages_that_a_step_covers(advance: StateAdvance, scored: int) -> None:
    plan = PlanSpec(budget=DefaultBudget(2), reserved=Reserved(1, 2), state_advance=advance)
    driver = Driver("running", plan=plan)
    driver.start("a", list(range(PAGE * 8 - 2)))
    driver.decode({"a": [1]})
    rows = LAYERS * HEADS
    counters = driver.session.counters
    assert counters.pages_scored == scored * rows
    written = 6 if advance is StateAdvance.VORTEX else 7  # the last page is not complete
    assert counters.num_bytes.state_written == 4 * written * rows


def test_a_value_that_is_saved_and_never_loaded_survives_a_step_that_fits() -> None:
    class Last(Branches):
        def create_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
            return {**super().create_cache(block_size, head_dim), "last": (1, 1)}

        def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
            del ctx
            score: Value = self.score(q, cache)
            cache["last"] = score
            o.select(score.topk())

    graph = trace_flow(Last(), geometry_of(Last()), name="last")
    assert graph.has_saves
    plan = PlanSpec(budget=parse_policy("n_blocks if step else 4"))
    session = Session(graph, SessionSpec(num_kv_heads=1, num_pages=16, plan=plan))
    keys = np.random.default_rng(5).normal(size=(32, 1, graph.geometry.key_dim))
    keys = keys.astype(np.float32)
    session.admit("a", range(30))
    step = session.begin({"a": range(30)}, prompt=True)
    step.write(0, "a", keys[:30], keys[:30])
    step.finish()
    states = []
    for index in (30, 31):
        step = session.begin({"a": [0]})
        step.write(0, "a", keys[index : index + 1], keys[index : index + 1])
        step.attend(0, {"a": np.ones((1, 1, GROUP, graph.geometry.key_dim), np.float32)})
        step.finish()
        states.append(np.asarray(session.state("a", 0, "last"))[0, :, 0, 0])
    assert np.count_nonzero(states[0]) == 7
    assert np.array_equal(states[0], states[1])
