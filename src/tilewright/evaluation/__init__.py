"""Quality of sparse attention: what a flow keeps of dense attention, and what it reads for it."""

from tilewright.evaluation.quality import (
    join_trials,
    order_flows,
    pareto_front,
    run_trial,
)
from tilewright.evaluation.source import SOURCES, SourceKind
from tilewright.evaluation.source.base import Case, Source, SourceSpec

__all__ = (
    "SOURCES",
    "Case",
    "Source",
    "SourceKind",
    "SourceSpec",
    "join_trials",
    "order_flows",
    "pareto_front",
    "run_trial",
)
