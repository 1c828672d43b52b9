"""Plans from the configuration of an engine."""

import pytest

from tilewright.attention.flow.config import VortexConfig
from tilewright.attention.planner import RowFacts, RowPath, plan_spec_of, plan_step
from tilewright.errors import PlanError


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
