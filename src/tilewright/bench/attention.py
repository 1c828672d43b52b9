"""How fast sparse decode attention is beside dense attention in torch, on the same arrays."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from tilewright.attention.backends.reference import Session, SessionSpec, Step
from tilewright.attention.flow import trace_flow
from tilewright.attention.flows.quest import Quest
from tilewright.attention.graph import DType, Geometry
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import DefaultBudget, PlanSpec, Reserved
from tilewright.bench.peers import collector_at_rest, load_peer
from tilewright.records import installed_versions
from tilewright.records.bench import AttentionBenchRecord, AttentionWorkload, SelectionRow
from tilewright.units import ROW_TOLERANCES

REQUIRED_RATIO = 4.0
REQUIRED_GROWTH = 1.2
FLOAT32 = dict.fromkeys(("kv_dtype", "query_dtype", "field_dtype"), DType.FLOAT32)
PREFILL_TOKENS = 8192  # written at a time: bounds the memory of the set-up

SIZES = ("context", "page_size", "head_dim", "query_heads", "pages", "threads")
"""Fields of the workload that are those of the spec."""

Progress = Callable[[str], None]
Runner = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSpec:
    """32 rows of 128K tokens: 4 requests with 8 KV heads each."""

    requests: int = 4
    kv_heads: int = 8
    query_heads: int = 4
    head_dim: int = 128
    page_size: int = 16
    context: int = 131_072
    pages: int = 64  # that a row reads, the reserved first and last among them
    threads: int = 1
    seed: int = 1
    rounds: int = 5

    @property
    def short_context(self) -> int:
        return self.context // 4


@dataclass(frozen=True, slots=True)
class Loaded:
    """A session with every key in place, and one step that is ready to attend."""

    session: Session
    step: Step
    long_queries: Mapping[str, Any]
    short_queries: Mapping[str, Any]


def run_attention_bench(spec: BenchSpec, *, progress: Progress) -> AttentionBenchRecord:
    """Both sides take turns on the same keys and values; the best time of each counts."""
    peer = load_peer("torch_dense")
    peer.set_threads(spec.threads)
    with threadpool_limits(limits=spec.threads):
        progress(f"writing {spec.requests * spec.kv_heads} rows of {spec.context} tokens")
        loaded = _load(spec)
        query, key, value = _dense_operands(spec, loaded)
        progress("checking dense attention against torch")
        error = _dense_error(loaded, peer, (query, key, value))
        progress("taking turns: quest, SDPA, matmul, selection at two lengths")
        best = _measure(
            {
                "quest": partial(loaded.step.attend, 0, loaded.long_queries),
                "sdpa": partial(peer.attend_by_sdpa, query, key, value),
                "matmul": partial(peer.attend_by_matmul, query, key, value),
                "short": partial(loaded.step.select, 0, loaded.short_queries),
                "long": partial(loaded.step.select, 0, loaded.long_queries),
            },
            spec.rounds,
        )
    return _record(spec, best, error)


def _load(spec: BenchSpec) -> Loaded:
    """Long requests first, page after page; short ones share a quarter of their pages."""
    geometry = Geometry.gqa(
        page_size=spec.page_size, head_dim=spec.head_dim, query_heads=spec.query_heads, **FLOAT32
    )
    reserved = Reserved(1, 1)
    session = Session(
        optimize_graph(trace_flow(Quest(), geometry, name="quest")),
        SessionSpec(
            num_kv_heads=spec.kv_heads,
            num_pages=spec.requests * (spec.context // spec.page_size + 1),
            plan=PlanSpec(budget=DefaultBudget(spec.pages - reserved.total), reserved=reserved),
        ),
    )
    rng = np.random.default_rng(spec.seed)
    for index in range(spec.requests):
        _prefill(spec, session, rng, f"long{index}", _prompt(spec, index, spec.context))
    for index in range(spec.requests):
        _prefill(spec, session, rng, f"short{index}", _prompt(spec, index, spec.short_context))
    names = [f"{kind}{index}" for kind in ("long", "short") for index in range(spec.requests)]
    step = session.begin({name: [0] for name in names})
    for name in names:
        step.write(0, name, *_keys_and_values(spec, rng, 1))
    shape = (1, spec.kv_heads, spec.query_heads, spec.head_dim)
    queries = {name: rng.standard_normal(shape, dtype=np.float32) for name in names}
    long_names = names[: spec.requests]
    return Loaded(
        session,
        step,
        {name: queries[name] for name in long_names},
        {name: queries[name] for name in names if name not in long_names},
    )


def _prompt(spec: BenchSpec, index: int, context: int) -> range:
    """All tokens but the one that the measured step decodes."""
    return range(index * spec.context, index * spec.context + context - 1)


def _prefill(
    spec: BenchSpec, session: Session, rng: np.random.Generator, name: str, tokens: range
) -> None:
    hit = session.admit(name, tokens).hit_tokens
    for start in range(hit, len(tokens), PREFILL_TOKENS):
        part = tokens[start : start + PREFILL_TOKENS]
        step = session.begin({name: part}, prompt=True)
        step.write(0, name, *_keys_and_values(spec, rng, len(part)))
        step.finish()


def _keys_and_values(spec: BenchSpec, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Uniform in -2 .. 2: drawn five times as fast as normal numbers, and as good here."""
    shape = (count, spec.kv_heads, spec.head_dim)
    key, value = (rng.random(shape, dtype=np.float32) * 4 - 2 for _ in range(2))
    return key, value


def _dense_operands(spec: BenchSpec, loaded: Loaded) -> tuple[Any, Any, Any]:
    """The arrays of the session itself as torch tensors: [KV heads, requests, ...]."""
    pages = spec.requests * (spec.context // spec.page_size)
    peer = load_peer("torch_dense")
    shape = (spec.kv_heads, spec.requests, spec.context, spec.head_dim)
    key, value = (
        peer.shared_tensor(loaded.session.store.pool(0, name)[:, :pages].reshape(shape))
        for name in ("k", "v")
    )
    queries = np.stack([query[0] for query in loaded.long_queries.values()], axis=1)
    return peer.shared_tensor(queries), key, value


def _dense_error(loaded: Loaded, peer: Any, operands: tuple[Any, Any, Any]) -> float:
    """Largest error of the executor's dense attention on the first request, over the row norm."""
    expected = np.asarray(peer.attend_by_sdpa(*(part[:, :1] for part in operands)))[:, 0]
    name, query = next(iter(loaded.long_queries.items()))
    found = np.asarray(loaded.step.attend_dense(0, name, query).output)[0]
    error = np.linalg.norm(found - expected, axis=-1) / np.linalg.norm(expected, axis=-1)
    return float(error.max())


def _measure(runners: Mapping[str, Runner], rounds: int) -> dict[str, float]:
    """Turns, so that a slow moment of the machine hits all alike; one round to warm up."""
    best: dict[str, float] = {}
    for turn in range(rounds + 1):
        for name, runner in runners.items():
            with collector_at_rest():
                start = time.perf_counter()
                runner()
                seconds = time.perf_counter() - start
            if turn > 0:
                best[name] = min(seconds, best.get(name, seconds))
    return best


def _record(spec: BenchSpec, best: Mapping[str, float], error: float) -> AttentionBenchRecord:
    ratio = min(best["sdpa"], best["matmul"]) / best["quest"]
    growth = (best["long"] / best["short"]) / (spec.context / spec.short_context)
    is_right = error <= ROW_TOLERANCES["f32"]
    passed = is_right and ratio >= REQUIRED_RATIO and growth <= REQUIRED_GROWTH
    return AttentionBenchRecord(
        versions=installed_versions(engine="none"),
        torch=metadata.version("torch"),
        seed=spec.seed,
        workload=AttentionWorkload(
            rows=spec.requests * spec.kv_heads, **{name: getattr(spec, name) for name in SIZES}
        ),
        quest_128k_vs_dense_torch=ratio,
        growth=growth,
        sparse_seconds=best["quest"],
        sdpa_seconds=best["sdpa"],
        matmul_seconds=best["matmul"],
        selection=tuple(
            SelectionRow(context=context, pages=context // spec.page_size, seconds=best[name])
            for name, context in (("short", spec.short_context), ("long", spec.context))
        ),
        dense_error=error,
        passed=passed,
    )
