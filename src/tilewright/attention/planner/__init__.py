"""Frozen plans of a decode step: which rows are sparse, how many blocks each may read."""

from tilewright.attention.planner.advance import (
    earlier_state_pages,
    rows_read_whole,
    state_pages,
)
from tilewright.attention.planner.budget import (
    Budget,
    Capped,
    DefaultBudget,
    PerHead,
    PerLayer,
    Reserved,
    RowFacts,
    ThresholdBudget,
    TopPBudget,
)
from tilewright.attention.planner.config import plan_spec_of
from tilewright.attention.planner.plan import PlanSpec, RowPath, StateAdvance, StepPlan, plan_step
from tilewright.attention.planner.policy import Policy, parse_policy
from tilewright.attention.planner.row_arrays import most_candidates, row_budgets
from tilewright.attention.planner.rule import Exactly, MassRule, RowBudget, ScoreRule

__all__ = (
    "Budget",
    "Capped",
    "DefaultBudget",
    "Exactly",
    "MassRule",
    "PerHead",
    "PerLayer",
    "PlanSpec",
    "Policy",
    "Reserved",
    "RowBudget",
    "RowFacts",
    "RowPath",
    "ScoreRule",
    "StateAdvance",
    "StepPlan",
    "ThresholdBudget",
    "TopPBudget",
    "earlier_state_pages",
    "most_candidates",
    "parse_policy",
    "plan_spec_of",
    "plan_step",
    "row_budgets",
    "rows_read_whole",
    "state_pages",
)
