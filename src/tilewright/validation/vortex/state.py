"""State over decode steps on our executors, beside the recurrence of Vortex in NumPy: VX9, VX10."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.backends.machine import RowPlacement, StepValues, pooled
from tilewright.attention.backends.reference import SessionSpec
from tilewright.attention.flow import FieldSpec, trace_flow, vFlow
from tilewright.attention.graph import Geometry, Graph
from tilewright.attention.indexer import Conv1d, Normalize
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import DefaultBudget, PlanSpec, Reserved
from tilewright.engine import EngineKind
from tilewright.studies.decode.step import DecodeStep, simulate_step
from tilewright.units import ROW_TOLERANCES
from tilewright.validation.engine_run import machine_named
from tilewright.validation.finding import Finding, Row, exact
from tilewright.validation.vortex.rules import FLOAT32, decode
from tilewright.validation.vortex.state_model import (
    CONV_WEIGHTS,
    DECAY,
    SHAPES,
    StateCase,
    StateRow,
    expected_states,
)

HEADS, GROUP, WIDTH = 2, 2, 8
MACHINE = "ahbm-small"
SMALL_PAGES = "pe.mmu.page_bytes=4 KiB"  # keep memory small

CASES = (
    StateCase("1 + 1 reserved", first=1, last=1, topk=3, ratio=0.0, prompts=(5, 14, 17, 30)),
    StateCase("2 + 3 reserved", first=2, last=3, topk=2, ratio=0.0, prompts=(20, 24, 27, 50)),
    StateCase("half the blocks", first=0, last=2, topk=1, ratio=0.5, prompts=(7, 9, 11, 38)),
)
ON_MACHINE = StateCase("2 rows a head", first=1, last=2, topk=2, ratio=0.0, prompts=(14, 30))

Floats = NDArray[np.float32]


class StateFlow(vFlow):
    """state <- 0.5 state + shape(<mean query, mean key>); pages are ranked by the new state."""

    def __init__(self, shape: str) -> None:
        super().__init__()
        self.shape = shape
        weights = [[[weight]] for weight in CONV_WEIGHTS]
        self.convolve, self.normalize = Conv1d(weights), Normalize()

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, object]:
        del block_size
        return {"centroid": (1, head_dim), "running": FieldSpec((1, 1), "float32")}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        del loc, ctx
        cache["centroid"] = cache["k"].mean(1)
        cache["running"] = 0.0

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        running = DECAY * cache["running"] + self._shaped(cache["centroid"] @ q.mean(1).T, ctx)
        cache["running"] = running
        o.select(running.topk())

    def _shaped(self, score: Value, ctx: ContextBase) -> Value:
        shaped = score
        match self.shape:
            case "softmax":
                shaped = score.softmax(0)
            case "normalize":
                shaped = self.normalize(score, ctx=ctx)
            case "conv1d":
                shaped = self.convolve(score, ctx=ctx)
            case "mean":
                shaped = score - score.mean(0)
        return shaped


def state_graph(shape: str, block_size: int) -> Graph:
    """Trace and optimize a state flow in float32."""
    geometry = Geometry.gqa(page_size=block_size, head_dim=WIDTH, query_heads=GROUP, **FLOAT32)
    return optimize_graph(trace_flow(StateFlow(shape), geometry, name=f"state of {shape}"))


@dataclass(frozen=True, slots=True)
class _Data:
    """Keys [tokens, heads, D] and queries [steps, heads, G, D] of one request."""

    keys: Floats
    queries: Floats

    def row(self, head: int) -> StateRow:
        keys, queries = self.keys[:, head], self.queries[:, head]
        return StateRow(keys.astype(np.float64), queries.astype(np.float64))


def _draw(case: StateCase) -> list[_Data]:
    generator = np.random.default_rng(len(case.name))

    def drawn(*shape: int) -> Floats:
        return generator.normal(size=shape).astype(np.float32)

    return [
        _Data(drawn(prompt + case.steps, HEADS, WIDTH), drawn(case.steps, HEADS, GROUP, WIDTH))
        for prompt in case.prompts
    ]


def _plan(case: StateCase) -> PlanSpec:
    return PlanSpec(
        budget=DefaultBudget(case.topk, case.ratio), reserved=Reserved(case.first, case.last)
    )


def check_reference(_kind: EngineKind, *, shape: str, case: StateCase) -> Finding:
    """Count rows whose state behind a step is not that of the recurrence."""
    data = _draw(case)
    graph = state_graph(shape, case.block_size)
    pages = sum(case.num_blocks(len(each.keys)) for each in data)
    spec = SessionSpec(num_kv_heads=HEADS, num_pages=pages, plan=_plan(case))
    keys, queries = [each.keys for each in data], [each.queries for each in data]
    found: list[list[Floats]] = [[] for _ in data]
    for session, _ in decode(graph, spec, keys, queries):
        for request, states in enumerate(found):
            states.append(np.asarray(session.state(str(request), 0, "running"))[..., 0, 0])
    return exact(0, _num_unlike(case, shape, data, found), "rows")


def _num_unlike(
    case: StateCase, shape: str, data: Sequence[_Data], found: Sequence[Sequence[Floats]]
) -> int:
    """Count rows of all steps that differ; ``found`` are states [heads, blocks] by request.

    Float32 beside float64: the tolerance is relative to the largest state of a row.
    """
    unlike = 0
    for each, states in zip(data, found, strict=True):
        for head in range(HEADS):
            expected = expected_states(case, each.row(head), SHAPES[shape])
            for wanted, state in zip(expected, states, strict=True):
                limit = ROW_TOLERANCES["f32"] * max(1.0, float(np.abs(wanted).max()))
                unlike += not np.allclose(state[head], wanted, rtol=0.0, atol=limit)
    return unlike


def check_machine(kind: EngineKind, *, shape: str, placement: RowPlacement) -> Finding:
    """Count rows on a small machine, where state goes from step to step in its memory."""
    case, data = ON_MACHINE, _draw(ON_MACHINE)
    graph = state_graph(shape, case.block_size)
    kept: Sequence[Floats] = [np.zeros((HEADS, 0, 1, 1), np.float32) for _ in data]
    saved = np.zeros(len(data) * HEADS, dtype=np.int32)
    found: list[list[Floats]] = [[] for _ in data]
    for index in range(case.steps):
        contexts = tuple(prompt + index + 1 for prompt in case.prompts)
        values = _values(graph, data, contexts, index, kept)
        step = DecodeStep(
            machine=machine_named(MACHINE, SMALL_PAGES),
            graph=graph,
            contexts=contexts,
            kv_heads=HEADS,
            plan=_plan(case),
            placement=placement,
            values=replace(values, saved_pages=saved),
            engine=kind,
        )
        result = simulate_step(step, tells_stages=False).result
        kept, saved = result.kept["running_state"], result.saved_pages
        for request, states in enumerate(found):
            count = kept[request].shape[1]
            rows = saved[request * HEADS : (request + 1) * HEADS]
            has_state = np.arange(count)[None] < rows[:, None]
            states.append(np.where(has_state, kept[request][..., 0, 0], 0.0))
    return exact(0, _num_unlike(case, shape, data, found), "rows")


def _values(
    graph: Graph, data: Sequence[_Data], contexts: Sequence[int], index: int, kept: Sequence[Floats]
) -> StepValues:
    """Memory before the new token: keys, summaries of complete blocks, and the state."""
    size = graph.geometry.page_size
    keys, centroids = [], []
    for each, count in zip(data, contexts, strict=True):
        blocks = -(-count // size)
        padded = np.zeros((HEADS, blocks * size, WIDTH), np.float32)
        padded[:, : count - 1] = each.keys[: count - 1].swapaxes(0, 1)
        keys.append(padded.reshape(HEADS, blocks, size, WIDTH))
        complete = np.arange(blocks) < (count - 1) // size
        means = keys[-1].mean(axis=2, keepdims=True)
        centroids.append(np.where(complete[None, :, None, None], means, 0).astype(np.float32))
    known: dict[str, Any] = {"k": keys, "v": keys, "centroid": centroids}
    known["running"] = [np.zeros((*item.shape[:2], 1, 1), np.float32) for item in keys]
    tokens = [each.keys[count - 1] for each, count in zip(data, contexts, strict=True)]
    return StepValues(
        fields={name: known[name] for name in pooled(graph)},
        new_tokens={"k": np.stack(tokens), "v": np.stack(tokens)},
        inputs={"q": np.stack([each.queries[index] for each in data])},
        kept={"running_state": list(kept)},
    )


def oracles() -> Iterator[Row]:
    for case in CASES:
        for shape in SHAPES:
            rows = len(case.prompts) * HEADS * case.steps
            name = f"VX9 state over {case.steps} steps, {shape}, {case.name}: of {rows} rows unlike"
            yield name, partial(check_reference, shape=shape, case=case)
    rows = len(ON_MACHINE.prompts) * HEADS * ON_MACHINE.steps
    for shape, placement in (("scores", RowPlacement.STRIPE), ("softmax", RowPlacement.HEAD)):
        where = f"{shape}, on {MACHINE} by {placement}"
        name = f"VX10 state over {ON_MACHINE.steps} steps, {where}: of {rows} rows unlike"
        yield name, partial(check_machine, shape=shape, placement=placement)
