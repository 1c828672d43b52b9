"""Decode steps on the reference executor and on the generated kernels, from the same memory.

State is what each side made of it: it goes from step to step on both sides alone.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.attention.triton.interpreter import ask
from tests.attention.triton.kept import Kept, argument_of, prompt_windows
from tilewright.attention.backends.reference import Session, SessionSpec, Step
from tilewright.attention.backends.triton import StepSizes
from tilewright.attention.codegen import Cut, KernelFile, Target, Tiling, compile_graph
from tilewright.attention.codegen.memory_form import packed, parameter_tables
from tilewright.attention.flow import FlowBase, trace_flow
from tilewright.attention.graph import DType, FlowKind, Geometry, Graph, ValueType
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import (
    Budget,
    PlanSpec,
    Reserved,
    RowFacts,
    StateAdvance,
    StepPlan,
    TopPBudget,
    plan_step,
    row_budgets,
    state_pages,
)

Floats = npt.NDArray[np.float32]
Fields = dict[str, tuple[Any, Any]]
"""Summaries or states by name: those of the reference, and those of the kernels."""
SMALL = Tiling(page_tile=4, row_tile=8, attend_tokens=16, part_pages=3)
"""Small enough that short rows have several tiles and parts."""
LARGE = Tiling(page_tile=16, row_tile=16, part_pages=8)
"""Fewer programs, where the cuts are not what is tested."""


def unpacked(values: npt.NDArray[Any], kind: ValueType) -> npt.NDArray[Any]:
    """Unpack entries to [..., r, c] with one element a byte.

    >>> from tilewright.attention.graph import FORMAT, Leading
    >>> kind = ValueType(FORMAT.PAGED, Leading.PAGES, (1, 3), DType.INT4)
    >>> unpacked(packed(np.array([[-8, 7, -1]], dtype=np.int8), kind), kind).tolist()
    [[-8, 7, -1]]
    """
    if kind.dtype is not DType.INT4:
        return values
    halves = np.stack([values & 15, values >> 4], axis=-1).reshape(*values.shape[:-1], -1)
    signed = (halves[..., : kind.num_elements] ^ 8).astype(np.int8) - 8
    return signed.reshape(*values.shape[:-1], *kind.shape)


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
    expected_lse: Floats | None  # None if several softmaxes were added
    log_sum_exp: Floats | None
    states: Fields
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
    state_advance: StateAdvance = StateAdvance.VORTEX

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
    most: int | None = None,
) -> Pair:
    """One step, and the summaries of all pages that are complete with it."""
    by_mass = isinstance(rows.budget, TopPBudget)
    file = compile_graph(graph, tiling, target, cut, by_mass=by_mass, most=most)
    both = Both(graph, rows, file)
    step = both.begin()
    return replace(both.attend(step), fields=both.completed())


def run_steps(graph: Graph, rows: Rows, count: int, tiling: Tiling = SMALL) -> list[Pair]:
    """Steps one after the other; each request grows by a token a step."""
    both = Both(graph, rows, compile_graph(graph, tiling))
    return [both.attend(both.begin()) for _ in range(count)]


def run_completion(graph: Graph, rows: Rows) -> Fields:
    """The summaries of the complete pages of all requests, without a step."""
    both = Both(graph, rows, compile_graph(graph, SMALL))
    both.begin()
    return both.completed()


class Both:
    """A session of the reference, and the memory that kernels keep beside it."""

    def __init__(self, graph: Graph, rows: Rows, file: KernelFile) -> None:
        self.graph, self.rows, self.file = graph, rows, file
        self.heads = 1 if graph.geometry.kind is FlowKind.MLA else rows.kv_heads
        self.names = [f"r{index}" for index in range(len(rows.tokens))]
        self.tokens = [count - 1 for count in rows.tokens]
        self.steps = 0
        self.max_pages = max(rows.tokens) // graph.geometry.page_size + 4
        num_pages = len(rows.tokens) * self.max_pages
        self.plan = PlanSpec(
            budget=rows.budget,
            reserved=rows.reserved,
            min_context=rows.min_context,
            state_advance=rows.state_advance,
        )
        spec = SessionSpec(num_kv_heads=self.heads, num_pages=num_pages, plan=self.plan)
        order = np.random.default_rng(rows.seed).permutation(num_pages).tolist()
        self.session = Session(graph, spec, page_order=order)
        self.generator = np.random.default_rng(rows.seed)
        self.kept = Kept(graph, len(rows.tokens) * self.heads, self.max_pages)
        for index in range(len(self.names)):
            self._fill(index)

    def _drawn(self, count: int) -> tuple[Floats, ...]:
        widths = [width for _, width in self.graph.geometry.reserved_fields.values()]
        shapes = [(count, self.heads, width) for width in widths]
        return tuple(self.rows.drawn(self.generator, *shape) for shape in shapes)

    def _queries(self, count: int) -> Floats:
        sizes = self.graph.geometry
        shape = (count, self.heads, sizes.query_heads, sizes.key_dim)
        return self.rows.drawn(self.generator, *shape)

    def _fill(self, index: int) -> None:
        """All tokens of a request but the first decoded one."""
        name, count = self.names[index], self.tokens[index]
        prompt = [1000 * index + token for token in range(count)]
        self.session.admit(name, prompt)
        if not prompt:
            return
        step = self.session.begin({name: prompt}, prompt=True)
        tokens = self._drawn(count)
        step.write(0, name, *tokens)
        windows = prompt_windows(self.graph)
        if windows:
            queries = self._queries(min(max(windows), count))
            step.observe(0, name, queries)
            rows = range(index * self.heads, (index + 1) * self.heads)
            self.kept.observe(self.graph, windows, rows, tokens[0], queries)
        step.finish()

    def begin(self) -> Step:
        """A step in which every request has one more token."""
        step = self.session.begin({name: [0] for name in self.names})
        for index, name in enumerate(self.names):
            step.write(0, name, *self._drawn(1))
            self.tokens[index] += 1
        return step

    def draw_queries(self) -> list[Floats]:
        """Of the new token of each request."""
        return [self._queries(1) for _ in self.names]

    def launch(self, queries: list[Floats]) -> tuple[StepSizes, dict[str, Any]]:
        """What a launcher is told of the step."""
        sizes = StepSizes(
            num_requests=len(self.names),
            num_kv_heads=self.heads,
            max_pages=self.max_pages,
            num_blocks=self.session.store.pool(0, self.graph.fields[0].name).shape[1],
        )
        return sizes, self._arguments(np.concatenate(queries))

    def attend(self, step: Step) -> Pair:
        queries = self.draw_queries()
        found = ask("step", self.file, *self.launch(queries))
        results = step.attend(0, dict(zip(self.names, queries, strict=True)))
        step.finish()
        heads = range(self.heads)
        states = {
            state.name: (
                [np.asarray(self.session.state(name, 0, state.name)) for name in self.names],
                unpacked(found[f"{argument_of(state.name)}_next"], state.type),
            )
            for state in self.graph.states
        }
        advanced = state_pages(self._plan_step(), self.graph)
        self.kept.take(found, [self._kept_pages(count) for count in self.tokens], advanced)
        self.steps += 1
        sums = [results[name].log_sum_exp for name in self.names]
        return Pair(
            [results[name].pages(0, head).tolist() for name in self.names for head in heads],
            found["pages"],
            np.concatenate([np.asarray(results[name].output)[0] for name in self.names]),
            found["output"],
            None
            if any(item is None for item in sums)
            else np.concatenate([np.asarray(item)[0] for item in sums]),
            found["log_sum_exp"],
            self._by_row(states),
            {},
        )

    def _plan_step(self) -> StepPlan:
        size = self.graph.geometry.page_size
        facts = [
            RowFacts(-(-count // size), count, head=head, step=self.steps)
            for count in self.tokens
            for head in range(self.heads)
        ]
        return plan_step(self.plan, facts)

    def _seen_pages(self, count: int) -> int:
        """Complete pages; one that begins anew with this token shows its state a step later."""
        size = self.graph.geometry.page_size
        written = {write.target for write in self.graph.field_writes}
        anew = any(state.name in written for state in self.graph.states) and count % size == 0
        return count // size - anew

    def _kept_pages(self, count: int) -> int:
        size = self.graph.geometry.page_size
        return -(-count // size) if self.graph.partial_pages else count // size

    def _by_row(self, states: Fields) -> Fields:
        """States of pages that have one: those of the reference, and those of the kernels.

        A Save has them in the pages that it advanced so far; an op remembers complete pages.
        """
        saved = {state.name for state in self.graph.states if state.is_saved}
        complete = np.repeat([self._seen_pages(count) for count in self.tokens], self.heads)
        found = {}
        for name, (expected, kernel) in states.items():
            counts = complete
            if name in saved:
                counts = np.minimum(self.kept.arguments["saved_pages"], complete)
            by_row = [of_head for of_request in expected for of_head in of_request]
            found[name] = (
                np.concatenate([row[:n] for row, n in zip(by_row, counts, strict=True)]),
                np.concatenate([row[:n] for row, n in zip(kernel, counts, strict=True)]),
            )
        return found

    def completed(self) -> Fields:
        """The summaries of all complete pages: those of the session, and those of the kernel."""
        names = [write.target for write in self.graph.field_writes]
        if not names:
            return {}
        size = self.graph.geometry.page_size
        counts = [count // size for count in self.tokens]
        full = np.concatenate(
            [self._blocks(name)[:count] for name, count in zip(self.names, counts, strict=True)]
        )
        pools = self.pools()
        for name in names:
            pools[f"{argument_of(name)}_pool"] = np.zeros_like(pools[f"{argument_of(name)}_pool"])
        pages = np.concatenate([np.arange(count) for count in counts])
        found = self._complete(pools, full, pages, np.full(len(full), size))
        return {
            name: (
                self.session.store.pool(0, name)[:, full],
                unpacked(found[f"{argument_of(name)}_pool"], self._stored_types()[name])[:, full],
            )
            for name in names
        }

    def _complete(self, pools: Any, blocks: Any, pages: Any, tokens: Any) -> dict[str, Any]:
        places = {"new_pages": pages, "new_tokens": tokens}
        given: dict[str, Any] = {
            name: np.asarray(value, dtype=np.int32) for name, value in places.items()
        }
        given |= {"new_blocks": np.asarray(blocks, dtype=np.int64), "layer": 0}
        tables = parameter_tables(self.graph, 0)
        return {**pools, **ask("complete", self.file, {**pools, **given, **tables})}

    def _blocks(self, name: str) -> Any:
        return np.asarray(self.session.pager.table(name).block_ids())

    def _stored_types(self) -> dict[str, ValueType]:
        found = {item.name: item.type for item in self.graph.fields}
        found |= {item.name: item.type for item in self.graph.states}
        return {name: kind for name, kind in found.items() if name in self.session.store.dtypes}

    def pools(self) -> dict[str, Any]:
        """Pools as kernels take them: four bits are packed."""
        return {
            f"{argument_of(name)}_pool": packed(self.session.store.pool(0, name), kind)
            for name, kind in self._stored_types().items()
        }

    def _step_pools(self) -> dict[str, Any]:
        """With the summaries of pages that are being filled, if the flow asks for them."""
        pools, size = self.pools(), self.graph.geometry.page_size
        open_pages = [
            (name, n) for name, n in zip(self.names, self.tokens, strict=True) if n % size
        ]
        if not self.graph.partial_pages or not open_pages:
            return pools
        pages = [count // size for _, count in open_pages]
        blocks = [
            self._blocks(name)[page] for (name, _), page in zip(open_pages, pages, strict=True)
        ]
        return self._complete(pools, blocks, pages, [count % size for _, count in open_pages])

    def _arguments(self, queries: Floats) -> dict[str, Any]:
        sizes, rows = self.graph.geometry, self.rows
        counts = [-(-count // sizes.page_size) for count in self.tokens]
        table = np.zeros((len(self.names), self.max_pages), dtype=np.int64)
        for index, name in enumerate(self.names):
            table[index, : counts[index]] = self._blocks(name)[: counts[index]]
        dtype = np.float16 if sizes.query_dtype is DType.FLOAT16 else np.float32
        return {
            "q_in": queries.astype(dtype),
            "num_tokens_ptr": np.array(self.tokens, dtype=np.int32),
            "block_table": table,
            "first_reserved": rows.reserved.first,
            "last_reserved": rows.reserved.last,
            "scale": 1.0 / float(np.sqrt(sizes.key_dim)),
            "layer": 0,
            "step_ptr": np.full(len(self.names), self.steps, dtype=np.int32),
            **row_budgets(self._plan_step(), self.graph),
            **self._step_pools(),
            **parameter_tables(self.graph, 0),
            **self.kept.arguments,
        }
