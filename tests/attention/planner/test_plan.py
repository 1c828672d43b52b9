"""Plans of a step: what is read, what is scored, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.attention.flow.config import VortexConfig
from tilewright.attention.planner import (
    DefaultBudget,
    PlanSpec,
    Reserved,
    RowFacts,
    RowPath,
    StateAdvance,
    parse_policy,
    plan_spec_of,
    plan_step,
)
from tilewright.errors import PlanError

BLOCK = 16


def rows_of(*lengths: int, layer: int = 0) -> list[RowFacts]:
    return [RowFacts(blocks, blocks * BLOCK, layer=layer) for blocks in lengths]


SPECS = st.builds(
    PlanSpec,
    budget=st.builds(DefaultBudget, topk=st.integers(1, 40), ratio=st.floats(0, 1)),
    reserved=st.builds(Reserved, first=st.integers(0, 3), last=st.integers(1, 3)),
    chunk_blocks=st.integers(1, 50),
)
LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=8)


@given(spec=SPECS, lengths=LENGTHS)
def test_items_cover_each_candidate_of_each_sparse_row_once(
    spec: PlanSpec, lengths: list[int]
) -> None:
    plan = plan_step(spec, rows_of(*lengths))
    covered = [
        (int(row), block)
        for row, begin, stop in plan.work_items
        for block in range(int(begin), int(stop))
    ]
    expected = [
        (row, block)
        for row in range(plan.num_rows)
        if plan.is_sparse(row)
        for block in plan.candidates(row)
    ]
    assert covered == expected


@given(spec=SPECS, lengths=LENGTHS)
def test_a_row_reads_the_default_formula_or_all_of_itself(
    spec: PlanSpec, lengths: list[int]
) -> None:
    plan = plan_step(spec, rows_of(*lengths))
    assert isinstance(spec.budget, DefaultBudget)
    for row, blocks in enumerate(lengths):
        wanted = max(
            spec.budget.topk + spec.reserved.first + spec.reserved.last,
            int(blocks * spec.budget.ratio // 1),
        )
        assert plan.budgets[row].at_most == min(blocks, wanted)
        assert plan.is_sparse(row) == (wanted < blocks)
        assert plan.read_offsets[row + 1] - plan.read_offsets[row] == min(blocks, wanted)
        assert plan.row_offsets[row + 1] - plan.row_offsets[row] == blocks


@given(spec=SPECS, lengths=LENGTHS)
def test_items_of_a_flow_with_state_cover_all_but_the_last_reserved_blocks_of_sparse_rows(
    spec: PlanSpec, lengths: list[int]
) -> None:
    plan = plan_step(spec, rows_of(*lengths), saves_state=True)
    covered = [(row, block) for row, begin, stop in plan.work_items for block in range(begin, stop)]
    sparse = [row for row in range(plan.num_rows) if plan.is_sparse(row)]
    stops = {row: lengths[row] - spec.reserved.last for row in sparse}
    assert covered == [(row, block) for row in sparse for block in range(stops[row])]


@given(spec=SPECS, lengths=LENGTHS)
def test_items_cover_every_block_of_every_row_where_all_state_advances(
    spec: PlanSpec, lengths: list[int]
) -> None:
    spec = replace(spec, state_advance=StateAdvance.EVERY_BLOCK)
    plan = plan_step(spec, rows_of(*lengths), saves_state=True)
    assert int((plan.work_items[:, 2] - plan.work_items[:, 1]).sum()) == sum(lengths)


def test_counts_beyond_32_bits_are_exact() -> None:
    blocks = 3_000_000_000
    spec = PlanSpec(chunk_blocks=1_000_000_000)
    plan = plan_step(spec, rows_of(blocks, 2_000_000))
    assert plan.row_offsets.tolist() == [0, blocks, blocks + 2_000_000]
    assert plan.work_items[-2].tolist() == [0, 2_000_000_001, blocks - 1]


def test_a_million_blocks_of_a_row_are_planned_in_chunks() -> None:
    plan = plan_step(PlanSpec(), rows_of(1_000_000))
    assert len(plan.work_items) == -(-999_998 // 32)
    assert plan.work_items.dtype == np.int64


def test_a_row_says_why_it_is_dense() -> None:
    spec = PlanSpec(
        budget=DefaultBudget(topk=2), dense_layers=frozenset({3}), min_context=10 * BLOCK
    )
    assert plan_step(spec, rows_of(50, layer=3)).paths == (RowPath.SKIPPED,)
    assert plan_step(spec, rows_of(9, 50)).paths == (RowPath.SHORT, RowPath.SPARSE)
    assert plan_step(PlanSpec(), rows_of(32)).paths == (RowPath.FITS,)
    assert plan_step(PlanSpec(), rows_of(33)).paths == (RowPath.SPARSE,)


@pytest.mark.parametrize("blocks", [0, 1])
def test_a_budget_below_the_reserved_blocks_is_refused(blocks: int) -> None:
    spec = PlanSpec(budget=parse_policy(str(blocks)))
    with pytest.raises(PlanError, match=rf"a budget of {blocks} blocks .* at least the 2 reserved"):
        plan_step(spec, rows_of(50))


def test_a_row_shorter_than_the_reserved_blocks_reads_all_of_itself() -> None:
    plan = plan_step(PlanSpec(reserved=Reserved(2, 2)), rows_of(1, 3))
    assert plan.paths == (RowPath.FITS, RowPath.FITS)
    assert len(plan.candidates(0)) == 0


def test_a_row_without_blocks_is_refused() -> None:
    with pytest.raises(PlanError, match="no blocks"):
        plan_step(PlanSpec(), [RowFacts(0, 0)])


def test_a_plan_cannot_be_changed() -> None:
    plan = plan_step(PlanSpec(), rows_of(50))
    with pytest.raises(ValueError, match="read-only"):
        plan.num_blocks[0] = 1


def blocks(config: VortexConfig, num_blocks: int, layer: int = 0) -> tuple[RowPath, int]:
    plan = plan_step(plan_spec_of(config), [RowFacts(num_blocks, 16 * num_blocks, layer=layer)])
    return plan.paths[0], plan.budgets[0].at_most


def test_every_field_of_the_budget_reaches_the_plan() -> None:
    config = VortexConfig(
        topk_val=4, topk_ratio=0.25, block_reserved_bos=2, block_reserved_eos=3, layers_skip=(1,)
    )
    assert blocks(config, 20) == (RowPath.SPARSE, 9)
    assert blocks(config, 80) == (RowPath.SPARSE, 20)
    assert blocks(config, 80, layer=1) == (RowPath.SKIPPED, 80)
    assert blocks(config.model_copy(update={"max_topk_val": 6}), 80) == (RowPath.SPARSE, 11)
    assert blocks(config.model_copy(update={"min_ctx": 2000}), 80) == (RowPath.SHORT, 80)


def test_a_policy_of_the_configuration_is_compiled_or_refused() -> None:
    config = VortexConfig(topk_val=4, schedule_policy="topk_val + cached_block_len // 10")
    assert blocks(config, 100) == (RowPath.SPARSE, 14)
    with pytest.raises(PlanError, match="policy"):
        plan_spec_of(VortexConfig(schedule_policy="return topk_val;"))
