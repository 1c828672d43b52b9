"""One flow on seeded data: what it reads, what it misses, and what dense attention would give."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tilewright.attention.backends.reference import Session, SessionSpec, StepOutput
from tilewright.attention.backends.reference.op.frame import Counters
from tilewright.attention.graph import DType, FlowKind, Graph, graph_hash
from tilewright.attention.ops.leaf import prompt_windows
from tilewright.attention.planner import PlanSpec, Reserved, StateAdvance, parse_policy
from tilewright.errors import AttentionError
from tilewright.processes import memory_bytes
from tilewright.records import Document, installed_versions
from tilewright.records.attention.run import (
    AttentionRunRecord,
    BytesByKind,
    MassFigures,
    NeedleFigures,
    PageFigures,
    RowCounts,
    TrialSizes,
)
from tilewright.studies.decode.data import RequestData, draw_request, prefill, softmax
from tilewright.units import format_bytes

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec:
    """Sizes of the data, and how many pages a row may read."""

    context: int = 4096
    batch: int = 2
    budget: int = 32  # pages of a row, reserved ones included
    steps: int = 4
    kv_heads: int = 2
    seed: int = 1
    namespace: Literal["numpy", "torch"] = "numpy"
    reserved: Reserved = field(default_factory=Reserved)
    state_advance: StateAdvance = StateAdvance.VORTEX
    notes: tuple[str, ...] = ()  # of the flow, for the record


@dataclass(slots=True)
class Findings:
    """What the rows of all steps gave."""

    masses: list[float] = field(default_factory=list)
    best_masses: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    found_needles: int = 0
    planted_needles: int = 0
    pages_in_rows: int = 0
    dense_bytes: int = 0  # of keys and values that dense attention would have read


def run_trial(graph: Graph, spec: TrialSpec, *, progress: Progress) -> AttentionRunRecord:
    """Prefill every request, decode ``steps`` tokens, and compare each with dense attention."""
    kv_heads = 1 if graph.geometry.kind is FlowKind.MLA else spec.kv_heads
    _check_sizes(graph, spec, kv_heads)
    session = Session(graph, _session_spec(graph, spec, kv_heads), namespace=spec.namespace)
    progress(f"writing {spec.batch} requests of {spec.context} tokens")
    requests = {
        f"request{index}": draw_request(
            graph,
            np.random.default_rng((spec.seed, index)),
            context=spec.context,
            steps=spec.steps,
            kv_heads=kv_heads,
            window=max(prompt_windows(graph), default=1),
        )
        for index in range(spec.batch)
    }
    for index, (name, data) in enumerate(requests.items()):
        first = index * spec.context  # no two requests share a token
        prefill(session, name, data, range(first, first + spec.context))
    findings = Findings()
    for step in range(spec.steps):
        progress(f"decoding token {step + 1} of {spec.steps}")
        outputs = _decode(session, requests, step, spec)
        for name, data in requests.items():
            _judge(graph, data, spec, step, outputs[name], findings)
            names, num_tokens = graph.geometry.reserved_fields, spec.context + step + 1
            findings.dense_bytes += kv_heads * session.store.row_bytes(names, num_tokens)
    return _record(graph, spec, kv_heads, session, findings)


def _check_sizes(graph: Graph, spec: TrialSpec, kv_heads: int) -> None:
    """Refuse data that this computer has no memory for, before any is drawn."""
    geometry = graph.geometry
    values = geometry.key_dim + geometry.value_dim
    num_queries = max(prompt_windows(graph), default=1) + spec.steps
    queries = num_queries * (geometry.query_heads + 1) * geometry.key_dim
    of_a_head = (spec.context + spec.steps) * values + queries
    needed = spec.batch * kv_heads * of_a_head * np.dtype(np.float32).itemsize
    if needed > memory_bytes():
        found = f"keys, values and queries of {format_bytes(needed)}"
        expected = f"at most the {format_bytes(memory_bytes())} of this computer"
        raise AttentionError("attention run", found, expected, "ask for smaller sizes")


def _session_spec(graph: Graph, spec: TrialSpec, kv_heads: int) -> SessionSpec:
    pages = -(-(spec.context + spec.steps) // graph.geometry.page_size)
    plan = PlanSpec(
        budget=parse_policy(str(spec.budget)),
        reserved=spec.reserved,
        state_advance=spec.state_advance,
    )
    return SessionSpec(num_kv_heads=kv_heads, num_pages=spec.batch * pages, plan=plan)


def _decode(
    session: Session, requests: dict[str, RequestData], index: int, spec: TrialSpec
) -> dict[str, StepOutput]:
    at = spec.context + index
    step = session.begin({name: [index] for name in requests})
    inputs: dict[str, dict[str, Any]] = {}
    for name, data in requests.items():
        values = None if data.values is None else data.values[at : at + 1]
        step.write(0, name, data.keys[at : at + 1], values)
        query = data.queries[at - data.first_query]
        inputs[name] = {"q": query[None]} | {
            key: value[index : index + 1] for key, value in data.inputs.items()
        }
    outputs = step.attend(0, inputs)
    step.finish()
    return outputs


def _judge(
    graph: Graph,
    data: RequestData,
    spec: TrialSpec,
    step: int,
    found: StepOutput,
    findings: Findings,
) -> None:
    """Compare one token of one request with dense attention in float64, head by head."""
    geometry = graph.geometry
    num_tokens = spec.context + step + 1
    num_pages = -(-num_tokens // geometry.page_size)
    output = np.asarray(found.output)[0]
    for head in range(output.shape[0]):
        query = data.queries[num_tokens - 1 - data.first_query, head]
        keys = data.keys[:num_tokens, head]
        values = (
            keys[:, : geometry.value_dim] if data.values is None else data.values[:num_tokens, head]
        )
        probability = softmax(query.astype(np.float64) @ keys.T * geometry.key_dim**-0.5)
        dense = probability @ values
        pages = found.pages(0, head)
        by_page = np.zeros((len(query), num_pages * geometry.page_size))
        by_page[:, :num_tokens] = probability
        by_page = by_page.reshape(len(query), num_pages, geometry.page_size).sum(axis=-1)
        captured = by_page[:, pages].sum(axis=-1)
        findings.masses += captured.tolist()
        best = np.sort(by_page.mean(axis=0))[::-1][: len(pages)]
        findings.best_masses.append(float(best.sum()))
        error = np.linalg.norm(output[head] - dense, axis=-1) / np.linalg.norm(dense, axis=-1)
        findings.errors += error.tolist()
        findings.pages_in_rows += num_pages
        needle_pages = data.needle_pages(step, head, geometry.page_size)
        findings.planted_needles += len(needle_pages)
        findings.found_needles += int(np.isin(needle_pages, pages).sum())


def _record(
    graph: Graph, spec: TrialSpec, kv_heads: int, session: Session, findings: Findings
) -> AttentionRunRecord:
    mean_mass = float(np.mean(findings.masses))
    return AttentionRunRecord.of(
        versions=installed_versions(engine="none"),
        flow=graph.name,
        flow_kind=graph.geometry.kind.value,
        graph_hash=graph_hash(graph),
        backend="reference",
        namespace=spec.namespace,
        sizes=_sizes(graph, spec, kv_heads),
        mass=MassFigures(
            mean=_share(mean_mass),
            worst=_share(min(findings.masses)),
            against_oracle=_share(mean_mass / float(np.mean(findings.best_masses))),
        ),
        output_error_mean=float(np.mean(findings.errors)),
        output_error_worst=float(max(findings.errors)),
        needles=NeedleFigures(planted=findings.planted_needles, found=findings.found_needles),
        **counted(session.counters, findings.pages_in_rows, findings.dense_bytes),
        notes=spec.notes,
    )


def _share(value: float) -> float:
    """Rounding of sums may leave a share just outside 0 .. 1."""
    return min(max(value, 0.0), 1.0)


def _sizes(graph: Graph, spec: TrialSpec, kv_heads: int) -> TrialSizes:
    return TrialSizes.of(
        spec,
        graph.geometry,
        kv_heads=kv_heads,
        dtype=DType(graph.geometry.kv_dtype).value,
        reserved_first=spec.reserved.first,
        reserved_last=spec.reserved.last,
        state_advance=spec.state_advance.value,
    )


def counted(counters: Counters, pages_in_rows: int, dense_bytes: int) -> dict[str, Document]:
    """Return what a session read, as fields of a record, beside what dense attention reads."""
    return {
        "pages": PageFigures(
            in_rows=pages_in_rows,
            scored=counters.pages_scored,
            selected=counters.pages_selected,
            read=counters.pages_read,
        ),
        "num_bytes": BytesByKind.of(counters.num_bytes, dense_kv_read=dense_bytes),
        "rows": RowCounts.of(
            counters, sparse=counters.sparse_rows, dense=dict(counters.dense_rows)
        ),
    }
