"""Sources of requests on which flows are judged, by name, with the sizes of their cases."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from tilewright.evaluation.source.base import Source, SourceSpec
from tilewright.evaluation.source.recall import RecallSource
from tilewright.evaluation.source.smollm2 import NeedleSource, TextSource
from tilewright.evaluation.source.synthetic import SyntheticSource


class SourceKind(StrEnum):
    """What flows are compared on."""

    SMOLLM2 = "smollm2"
    NEEDLE = "needle"
    RECALL = "recall"
    SYNTHETIC = "synthetic"


@dataclass(frozen=True, slots=True)
class SourceEntry:
    build: Callable[[SourceSpec], Source]
    context: int
    steps: int
    cases: int


SOURCES: Mapping[SourceKind, SourceEntry] = MappingProxyType(
    {
        SourceKind.SMOLLM2: SourceEntry(TextSource, context=2048, steps=16, cases=1),
        SourceKind.NEEDLE: SourceEntry(NeedleSource, context=2048, steps=16, cases=2),
        SourceKind.RECALL: SourceEntry(RecallSource, context=256, steps=16, cases=8),
        SourceKind.SYNTHETIC: SourceEntry(SyntheticSource, context=2048, steps=16, cases=2),
    }
)
