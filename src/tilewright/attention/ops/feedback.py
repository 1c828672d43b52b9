"""What attention itself tells a flow: the probability mass of pages."""

from dataclasses import dataclass
from typing import ClassVar

from tilewright.attention.graph import DType, Graph, Op, Scope, Side, Types, ValueType
from tilewright.attention.ops.example import Example
from tilewright.attention.ops.rule import check_whole


@dataclass(frozen=True, slots=True)
class _Mass(Op):
    sides: ClassVar[frozenset[Side]] = frozenset({Side.INDEXER})

    def infer(self, _inputs: Types, scope: Scope) -> ValueType:
        return scope.per_page((1, scope.geometry.query_heads), DType.FLOAT32)


@dataclass(frozen=True, slots=True)
class AttentionMass(_Mass):
    """Probability mass that each page got in the attention of the last step, per query head:
    float32 [S, 1, H].

    The masses of one head add up to 1 over the pages that the last step read; a page that it did
    not read, and every page in the first step, has 0. With several branches the masses of each
    branch are added, weighted by nothing. Kept like state: private to the request.
    """


@dataclass(frozen=True, slots=True)
class PromptMass(_Mass):
    """Probability mass of each page summed over the last ``window`` queries of the prompt, each
    attending causally to the whole prompt, per query head: float32 [S, 1, H].

    Set once when the prompt is complete (prefill observation); pages that begin later have 0. A
    prompt shorter than ``window`` is observed whole.
    """

    window: int

    def __post_init__(self) -> None:
        check_whole(self, "window", self.window, least=1)


def wants_mass(graph: Graph) -> bool:
    """Return whether the flow reads what the last attention gave each page."""
    return any(isinstance(node.op, AttentionMass) for node in graph.nodes(Side.INDEXER))


def prompt_windows(graph: Graph) -> tuple[int, ...]:
    """Return the windows of prompt queries whose masses the flow reads, ascending."""
    ops = [node.op for node in graph.nodes(Side.INDEXER)]
    return tuple(sorted({op.window for op in ops if isinstance(op, PromptMass)}))


EXAMPLES = (Example(AttentionMass()), Example(PromptMass(32)))
