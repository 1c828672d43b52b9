"""Quality of sparse attention: what a flow keeps of dense attention, and what it reads for it."""

from tilewright.evaluation.quality import (
    Mean,
    join_trials,
    mean_of,
    order_flows,
    paired_difference,
    pareto_front,
    run_trial,
    share_interval,
)
from tilewright.evaluation.source import SOURCES, SourceEntry, SourceKind
from tilewright.evaluation.source.base import Case, Source, SourceSpec
from tilewright.evaluation.stream import AttentionSamples, Stream, replay_flow
from tilewright.evaluation.words import Words, WordSamples, say_words

__all__ = (
    "SOURCES",
    "AttentionSamples",
    "Case",
    "Mean",
    "Source",
    "SourceEntry",
    "SourceKind",
    "SourceSpec",
    "Stream",
    "WordSamples",
    "Words",
    "join_trials",
    "mean_of",
    "order_flows",
    "paired_difference",
    "pareto_front",
    "replay_flow",
    "run_trial",
    "say_words",
    "share_interval",
)
