"""A decoded sequence as dense attention saw it, and what a flow reads of that.

Every flow is measured on one stream, so flows are compared on equal queries.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tilewright.attention.backends.reference import SessionSpec, StepOutput
from tilewright.attention.graph import Graph
from tilewright.attention.planner import PlanSpec
from tilewright.models.forward import AttentionStep
from tilewright.models.weights import Array
from tilewright.serving.decode import KeptAttention, PagedSequence, PagesByRow

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlantedNeedle:
    """A key of the context that the queries of one step and KV head point to."""

    step: int
    layer: int
    head: int
    position: int


@dataclass(frozen=True, eq=False)
class Stream:
    """One sequence: a context, then a token for each step."""

    context_tokens: tuple[int, ...]
    context: KeptAttention
    tokens: tuple[int, ...]  # of the steps
    queries: Floats  # [steps, layers, KV heads, group, head_dim]
    keys: Floats  # [steps, layers, KV heads, head_dim]
    values: Floats | None  # None under MLA: a latent is both
    outputs: Floats  # [steps, layers, KV heads, group, value_dim], of dense attention
    scale: float
    page_size: int
    needles: tuple[PlantedNeedle, ...] = ()

    @property
    def num_layers(self) -> int:
        return int(self.keys.shape[1])

    @property
    def num_kv_heads(self) -> int:
        return int(self.keys.shape[2])

    @property
    def num_pages(self) -> int:
        """After the last step."""
        return -(-(len(self.context_tokens) + len(self.tokens)) // self.page_size)

    @cached_property
    def page_mass(self) -> Doubles:
        """Each page's share of the dense softmax: [steps, layers, KV heads, group, pages]."""
        return np.stack([self._layer_mass(layer) for layer in range(self.num_layers)], axis=1)

    def _layer_mass(self, layer: int) -> Doubles:
        steps, heads = len(self.tokens), self.num_kv_heads
        group, width = self.queries.shape[3:]
        before = np.asarray(self.context.keys(layer))
        keys = np.concatenate([before, self.keys[:, layer]]).transpose(1, 2, 0)
        queries = self.queries[:, layer].transpose(1, 0, 2, 3).reshape(heads, -1, width)
        logits = (queries @ keys).astype(np.float64) * self.scale
        logits = logits.reshape(heads, steps, group, -1).transpose(1, 0, 2, 3)
        later = np.arange(keys.shape[2]) > len(before) + np.arange(steps)[:, None]
        logits = np.where(later[:, None, None], -np.inf, logits)
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        padded = np.zeros((*weights.shape[:-1], self.num_pages * self.page_size))
        padded[..., : weights.shape[-1]] = weights / weights.sum(-1, keepdims=True)
        mass: Doubles = padded.reshape(*weights.shape[:-1], self.num_pages, -1).sum(-1)
        return mass


class StepRecorder:
    """Goes around the attention step of a dense decoder and keeps what passes through.

    Layers come in order, a token at a time.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[Floats, ...]] = []

    def around(self, step: AttentionStep) -> AttentionStep:
        def recorded(layer: int, queries: Array, keys: Array, values: Array | None) -> Array:
            output = step(layer, queries, keys, values)
            kept = (queries, keys, values, output)
            self._rows.append(tuple(np.asarray(part)[0] for part in kept))
            return output

        return recorded

    def arrays(self, num_layers: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Queries, keys, values and outputs, each [steps, layers, ...]."""
        stacked = [np.stack(part) for part in zip(*self._rows, strict=True)]
        queries, keys, values, outputs = (
            part.reshape(-1, num_layers, *part.shape[1:]) for part in stacked
        )
        return queries, keys, values, outputs


Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AttentionSamples:
    """One figure for each step, a mean over all query heads of all layers."""

    mass: tuple[float, ...]
    head_mass: tuple[float, ...]  # over query heads of all layers instead, a mean over steps
    output_error: tuple[float, ...]  # |sparse - dense| / |dense|
    oracle_ratio: tuple[float, ...]  # to the mass of the best pages, as many in each KV head
    stability: tuple[float, ...]  # Jaccard index with the step before; one less than steps
    needle_hits: int  # planted needles whose page was read
    num_bytes: int  # read in all steps
    dense_bytes: int
    first_pages: PagesByRow  # of the first step: of each layer and KV head


@dataclass(frozen=True, slots=True)
class StepReading:
    """What one step read and gave in all layers."""

    read: Bools  # [layers, KV heads, group, pages]
    outputs: Doubles  # [layers, KV heads, group, value_dim]
    pages: PagesByRow


def replay_flow(stream: Stream, graph: Graph, plan: PlanSpec) -> AttentionSamples:
    """Decode the stream's queries under the flow; its output never reaches the next layer."""
    sequence = _begin(stream, graph, plan)
    before = _bytes_read(sequence)
    readings = _replay(stream, sequence)
    reads = [reading.read for reading in readings]
    masses = [(stream.page_mass[step] * read).sum(-1) for step, read in enumerate(reads)]
    best = [_best_mass(stream.page_mass[step], read) for step, read in enumerate(reads)]
    return AttentionSamples(
        mass=tuple(float(mass.mean()) for mass in masses),
        head_mass=tuple(map(float, np.mean(masses, axis=0).reshape(-1))),
        output_error=tuple(
            _error(reading.outputs, stream.outputs[step]) for step, reading in enumerate(readings)
        ),
        oracle_ratio=tuple(
            float(mass.mean() / most) for mass, most in zip(masses, best, strict=True)
        ),
        stability=tuple(map(_jaccard, reads, reads[1:])),
        needle_hits=_hits(stream, reads),
        num_bytes=_bytes_read(sequence) - before,
        dense_bytes=sequence.pages_in_rows * sequence.page_bytes,
        first_pages=readings[0].pages,
    )


def dense_outputs(stream: Stream, graph: Graph, plan: PlanSpec) -> Floats:
    """Outputs of a stream that nobody has decoded yet; ``plan`` has dense layers only."""
    readings = _replay(stream, _begin(stream, graph, plan))
    return np.stack([reading.outputs for reading in readings]).astype(np.float32)


def _begin(stream: Stream, graph: Graph, plan: PlanSpec) -> PagedSequence:
    spec = SessionSpec(
        num_kv_heads=stream.num_kv_heads,
        num_pages=stream.num_pages,
        num_layers=stream.num_layers,
        scale=stream.scale,
        plan=plan,
        rewind_window=0,
    )
    return PagedSequence(graph, spec, stream.context_tokens, stream.context)


def _replay(stream: Stream, sequence: PagedSequence) -> list[StepReading]:
    group, readings = stream.queries.shape[3], []
    for step, token in enumerate(stream.tokens):
        reads, outputs = [], []
        with sequence.taking(token) as paged:
            for layer in range(stream.num_layers):
                queries, keys = (part[step, layer][None] for part in (stream.queries, stream.keys))
                values = None if stream.values is None else stream.values[step, layer][None]
                outputs.append(np.asarray(paged(layer, queries, keys, values))[0])
                reads.append(_pages_read(paged.taken[layer], group, stream.num_pages))
        found = np.stack(outputs).astype(np.float64)
        readings.append(StepReading(np.stack(reads), found, paged.pages()))
    return readings


def _pages_read(taken: StepOutput, group: int, num_pages: int) -> Bools:
    """[KV heads, group, pages]: a query head that did not select a page does not look at it."""
    (lists,) = taken.lists
    read = np.zeros((len(lists.counts), group, num_pages), dtype=np.bool_)
    for head, count in enumerate(lists.counts):
        pages = np.asarray(lists.pages)[head, :count]
        who = True if lists.by_query is None else np.asarray(lists.by_query)[head, :count].T
        read[head][:, pages] = who
    return read


def _best_mass(page_mass: Doubles, read: Bools) -> float:
    """Mean mass of the best pages, as many in each KV head as were read there."""
    by_head = np.sort(page_mass.mean(axis=2), axis=-1)[..., ::-1].cumsum(axis=-1)
    counts = read.any(axis=2).sum(axis=-1)
    return float(np.take_along_axis(by_head, counts[..., None] - 1, axis=-1).mean())


def _error(found: Doubles, expected: Floats) -> float:
    norm = np.linalg.norm(expected.astype(np.float64), axis=-1)
    return float((np.linalg.norm(found - expected, axis=-1) / norm).mean())


def _jaccard(before: Bools, now: Bools) -> float:
    """Of the sets of pages that each KV head read."""
    first, second = before.any(axis=2), now.any(axis=2)
    return float(((first & second).sum(-1) / (first | second).sum(-1)).mean())


def _hits(stream: Stream, reads: list[Bools]) -> int:
    return sum(
        bool(reads[one.step][one.layer, one.head, :, one.position // stream.page_size].any())
        for one in stream.needles
    )


def _bytes_read(sequence: PagedSequence) -> int:
    counts = sequence.counters.num_bytes
    return counts.kv_read + counts.summary_read + counts.state_read
