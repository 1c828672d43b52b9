"""The plan that an engine's configuration asks for."""

from tilewright.attention.flow.config import VortexConfig
from tilewright.attention.planner.budget import Budget, Capped, DefaultBudget, Reserved
from tilewright.attention.planner.plan import PlanSpec, StateAdvance
from tilewright.attention.planner.policy import parse_policy


def plan_spec_of(config: VortexConfig) -> PlanSpec:
    """Budget, reserved blocks, dense layers and chunks of a configuration.

    ``schedule_policy`` is an expression here (see `parse_policy`); one that does not compile is an
    error and never the default. ``max_topk_val`` caps the scored blocks.
    """
    reserved = Reserved(config.block_reserved_bos, config.block_reserved_eos)
    budget: Budget = DefaultBudget(config.topk_val, config.topk_ratio)
    if config.schedule_policy is not None:
        budget = parse_policy(config.schedule_policy, topk=config.topk_val, ratio=config.topk_ratio)
    if config.max_topk_val is not None:
        budget = Capped(budget, config.max_topk_val + reserved.total)
    return PlanSpec(
        budget=budget,
        reserved=reserved,
        dense_layers=frozenset(config.layers_skip or ()),
        min_context=config.min_ctx,
        chunk_blocks=config.workload_chunk_size,
        state_advance=StateAdvance(config.state_advance),
    )
