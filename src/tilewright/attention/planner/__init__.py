"""Frozen plans of a decode step: which rows are sparse, how many blocks each may read."""

from tilewright.attention.planner.budget import (
    Budget,
    Capped,
    DefaultBudget,
    Exactly,
    MassRule,
    PerHead,
    PerLayer,
    Reserved,
    RowBudget,
    RowFacts,
    ScoreRule,
    ThresholdBudget,
    TopPBudget,
)
from tilewright.attention.planner.plan import (
    PlanSpec,
    RowPath,
    StateAdvance,
    StepPlan,
    plan_spec_of,
    plan_step,
)
from tilewright.attention.planner.policy import Policy, parse_policy
from tilewright.attention.planner.rows import (
    earlier_state_pages,
    most_candidates,
    row_budgets,
    rows_read_whole,
    state_pages,
)

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
