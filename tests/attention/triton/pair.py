"""One decode step on the reference executor and on the generated kernels, from the same memory."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.attention.triton.interpreter import ask
from tilewright.attention.backends.reference import Session, SessionSpec, Step
from tilewright.attention.backends.triton import StepSizes
from tilewright.attention.codegen import Cut, KernelFile, Target, Tiling, compile_graph
from tilewright.attention.codegen.memory_form import packed, parameter_tables, unpacked
from tilewright.attention.flow import FlowBase, trace_flow
from tilewright.attention.graph import DType, FlowKind, Geometry, Graph
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import (
    Budget,
    PlanSpec,
    Reserved,
    RowFacts,
    TopPBudget,
    plan_step,
    row_budgets,
)

Floats = npt.NDArray[np.float32]
Fields = dict[str, tuple[Any, Any]]
"""Summaries by name: those of the reference, and those of the kernels."""
SMALL = Tiling(page_tile=4, row_tile=8, attend_tokens=16, part_pages=3)
"""Small enough that short rows have several tiles and parts."""


def geometry_of(
    kind: FlowKind, dtype: DType, *, page_size: int = 4, query_heads: int = 2, width: int = 8
) -> Geometry:
    dtypes = {"kv_dtype": dtype, "query_dtype": dtype, "field_dtype": dtype}
    if kind is FlowKind.MLA:
        return Geometry.mla(
            page_size=page_size,
            kv_lora_rank=width - 2,
            qk_rope_head_dim=2,
            query_heads=query_heads,
            **dtypes,
        )
    return Geometry.gqa(page_size=page_size, head_dim=width, query_heads=query_heads, **dtypes)


def graph_of(flow: FlowBase, geometry: Geometry, name: str = "flow") -> Graph:
    return optimize_graph(trace_flow(flow, geometry, name=name))


@dataclass(frozen=True, slots=True)
class Pair:
    """Both results of a step, row by row; rows are requests times KV heads."""

    expected_pages: list[list[int]]
    pages: list[list[int]]
    expected: Floats
    output: Floats
    expected_lse: Floats
    log_sum_exp: Floats
    fields: Fields

    def worst_error(self) -> float:
        """Largest error of an output relative to its norm."""
        norm = np.linalg.norm(self.expected, axis=-1)
        error = np.linalg.norm(self.expected - self.output, axis=-1)
        return float(np.max(error / np.maximum(norm, 1e-6)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a step is made of. ``exact`` draws small whole quarters, whose sums have no rounding."""

    tokens: tuple[int, ...]  # of each request, the new one included
    budget: Budget
    reserved: Reserved = field(default_factory=Reserved)
    kv_heads: int = 2
    exact: bool = True
    seed: int = 1
    min_context: int = 0

    def drawn(self, generator: np.random.Generator, *shape: int) -> Floats:
        if self.exact:
            return (generator.integers(-8, 9, size=shape) / 4).astype(np.float32)
        return generator.normal(size=shape).astype(np.float32)


def run_pair(
    graph: Graph,
    rows: Rows,
    tiling: Tiling = SMALL,
    target: Target | None = None,
    cut: Cut | None = None,
) -> Pair:
    by_mass = isinstance(rows.budget, TopPBudget)
    file = compile_graph(graph, tiling, target, cut, by_mass=by_mass)
    setting = _set_up(graph, rows)
    session, step, names = setting.session, setting.step, setting.names
    fields = _compare_fields(session, graph, file, rows)
    arguments = _arguments(setting, graph, rows)
    sizes = StepSizes(
        num_requests=len(names),
        num_kv_heads=setting.heads,
        max_pages=arguments["block_table"].shape[1],
        num_blocks=session.store.pool(0, graph.fields[0].name).shape[1],
    )
    found = ask("step", file, sizes, arguments)
    results = step.attend(0, {name: setting.queries[i][None] for i, name in enumerate(names)})
    heads = range(setting.heads)
    return Pair(
        [results[name].pages(0, head).tolist() for name in names for head in heads],
        found["pages"],
        np.concatenate([np.asarray(results[name].output)[0] for name in names]),
        found["output"],
        np.concatenate([np.asarray(results[name].log_sum_exp)[0] for name in names]),
        found["log_sum_exp"],
        fields,
    )


def run_completion(graph: Graph, rows: Rows) -> Fields:
    """The summaries of the complete pages of all requests, without a step."""
    return _compare_fields(_set_up(graph, rows).session, graph, compile_graph(graph, SMALL), rows)


@dataclass(frozen=True, slots=True)
class Setting:
    """Requests with all their tokens written, in a step that has not attended yet."""

    session: Session
    step: Step
    plan: PlanSpec
    names: list[str]
    queries: list[Floats]
    heads: int


def _set_up(graph: Graph, rows: Rows) -> Setting:
    heads = 1 if graph.geometry.kind is FlowKind.MLA else rows.kv_heads
    size = graph.geometry.page_size
    num_pages = sum(-(-count // size) for count in rows.tokens) + 2
    plan = PlanSpec(budget=rows.budget, reserved=rows.reserved, min_context=rows.min_context)
    spec = SessionSpec(num_kv_heads=heads, num_pages=num_pages, plan=plan)
    order = np.random.default_rng(rows.seed).permutation(num_pages).tolist()
    session = Session(graph, spec, page_order=order)
    queries = _fill(session, graph, rows, heads)
    names = [f"r{index}" for index in range(len(rows.tokens))]
    step = session.begin({name: [0] for name in names})
    generator = np.random.default_rng(rows.seed + 1)
    for name in names:
        step.write(0, name, *_tokens(graph, rows, generator, heads, 1))
    return Setting(session, step, plan, names, queries, heads)


def _tokens(
    graph: Graph, rows: Rows, generator: np.random.Generator, heads: int, count: int
) -> tuple[Floats, ...]:
    reserved = graph.geometry.reserved_fields
    return tuple(rows.drawn(generator, count, heads, width) for _, width in reserved.values())


def _fill(session: Session, graph: Graph, rows: Rows, heads: int) -> list[Floats]:
    """All tokens but the last of every request; returns queries [heads, query heads, width]."""
    generator = np.random.default_rng(rows.seed)
    sizes, queries = graph.geometry, []
    for index, count in enumerate(rows.tokens):
        name = f"r{index}"
        prompt = [1000 * index + token for token in range(count - 1)]
        session.admit(name, prompt)
        if prompt:
            step = session.begin({name: prompt}, prompt=True)
            step.write(0, name, *_tokens(graph, rows, generator, heads, count - 1))
            step.finish()
        queries.append(rows.drawn(generator, heads, sizes.query_heads, sizes.key_dim))
    return queries


def _compare_fields(session: Session, graph: Graph, file: KernelFile, rows: Rows) -> Fields:
    """The summaries of all complete pages: those of the session, and those of the kernel."""
    names = [write.target for write in graph.field_writes]
    if not names:
        return {}
    size = graph.geometry.page_size
    counts = [count // size for count in rows.tokens]
    blocks = [
        session.pager.table(f"r{index}").block_ids()[:count] for index, count in enumerate(counts)
    ]
    full = np.concatenate(blocks).astype(np.int64)
    pools = pools_of(session, graph)
    emptied = {
        name: np.zeros_like(pool) if name.removesuffix("_pool") in names else pool
        for name, pool in pools.items()
    }
    page = {
        "new_blocks": full,
        "new_pages": np.concatenate([np.arange(count) for count in counts]).astype(np.int32),
        "new_tokens": np.full(len(full), size, dtype=np.int32),
        "layer": 0,
    }
    found = ask("complete", file, {**emptied, **page, **parameter_tables(graph, 0)})
    types = {item.name: item.type for item in graph.fields}
    return {
        name: (
            session.store.pool(0, name)[:, full],
            unpacked(found[f"{name}_pool"], types[name])[:, full],
        )
        for name in names
    }


def pools_of(session: Session, graph: Graph) -> dict[str, Any]:
    """Pools as kernels take them: four bits are packed."""
    return {
        f"{item.name}_pool": packed(session.store.pool(0, item.name), item.type)
        for item in graph.fields
    }


def _arguments(setting: Setting, graph: Graph, rows: Rows) -> dict[str, Any]:
    session, names, heads = setting.session, setting.names, setting.heads
    size = graph.geometry.page_size
    counts = [-(-count // size) for count in rows.tokens]
    table = np.zeros((len(names), max(counts) + 1), dtype=np.int64)
    for index, name in enumerate(names):
        table[index, : counts[index]] = session.pager.table(name).block_ids()[: counts[index]]
    facts = [
        RowFacts(count, tokens, head=head)
        for count, tokens in zip(counts, rows.tokens, strict=True)
        for head in range(heads)
    ]
    dtype = np.float16 if graph.geometry.query_dtype is DType.FLOAT16 else np.float32
    return {
        "q_in": np.stack(setting.queries).astype(dtype),
        "num_tokens_ptr": np.array(rows.tokens, dtype=np.int32),
        "block_table": table,
        "first_reserved": rows.reserved.first,
        "last_reserved": rows.reserved.last,
        "scale": 1.0 / float(np.sqrt(graph.geometry.key_dim)),
        "layer": 0,
        "step_ptr": np.zeros(len(names), dtype=np.int32),
        **row_budgets(plan_step(setting.plan, facts)),
        **pools_of(session, graph),
        **parameter_tables(graph, 0),
    }
