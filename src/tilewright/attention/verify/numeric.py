"""Runs a flow on random data and holds the result to the dense definition of attention."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tilewright.attention.backends.reference import Session, SessionSpec, StepOutput
from tilewright.attention.graph import EstimateOver, FlowKind, Geometry, Graph
from tilewright.attention.planner import DefaultBudget, PlanSpec, Reserved
from tilewright.errors import AttentionError
from tilewright.units import ROW_TOLERANCES

Array = npt.NDArray[np.float64]

LOOSEST = 2e-1  # of fp8 and int4
NUM_PAGES = 9
NUM_STEPS = 3


@dataclass(frozen=True, slots=True)
class NumericCheck:
    """One flow, its graph as traced and its graph after all passes."""

    traced: Graph
    optimized: Graph
    num_kv_heads: int

    def run(self, seed: int = 0) -> float:
        """The largest relative error. Raises `AttentionError` where a rule does not hold.

        - A budget of all pages gives dense attention.
        - A small budget gives attention over exactly the pages that were selected: reserved ones
          among them, ascending, none twice.
        - Passes change nothing but rounding: both graphs read the same pages on data whose sums
          are exact.
        """
        errors = [self._against_definition(seed, topk) for topk in (NUM_PAGES + 2, 2)]
        self._same_pages(seed)
        return max(errors)

    def _against_definition(self, seed: int, topk: int) -> float:
        data = _Data.drawn(self.traced.geometry, self.num_kv_heads, seed)
        exact = _reads_tokens_only(self.optimized, every_page=topk > NUM_PAGES)
        largest = 0.0
        for index, found in enumerate(_run(self.optimized, data, topk)):
            num_tokens = data.prompt + index + 1
            self._check_pages(found, num_tokens, topk)
            got = np.asarray(found.output, dtype=np.float64)[0]
            if not np.isfinite(got).all():
                fix = "look for divisions by 0 and logarithms of 0 in gates and estimates"
                raise AttentionError("numeric", "an output that is not finite", "numbers", fix)
            if exact:
                wanted = data.attention(found, index, self.traced.geometry)
                norms = np.linalg.norm(wanted, axis=-1)
                errors = np.linalg.norm(got - wanted, axis=-1) / norms
                largest = max(largest, float(errors.max()))
        allowed = ROW_TOLERANCES.get(self.traced.geometry.kv_dtype.short_name, LOOSEST)
        if largest > allowed:
            found_text = f"a relative error of {largest:.3g} at {topk} pages"
            fix = "this is a bug of the executor: report the flow"
            raise AttentionError("numeric", found_text, f"at most {allowed}", fix)
        return largest

    def _check_pages(self, found: StepOutput, num_tokens: int, topk: int) -> None:
        size = self.traced.geometry.page_size
        num_pages = -(-num_tokens // size)
        for head in range(self.num_kv_heads):
            pages = found.pages(0, head).tolist()
            rising = all(left < right for left, right in pairwise(pages))
            inside = pages and pages[0] == 0 and pages[-1] == num_pages - 1
            if not rising or not inside:
                expected = f"ascending pages from 0 to {num_pages - 1}, both among them"
                raise AttentionError(f"numeric, head {head}", f"{pages}", expected, f"topk={topk}")

    def _same_pages(self, seed: int) -> None:
        data = _Data.drawn(self.traced.geometry, self.num_kv_heads, seed, whole=True)
        before, after = (_run(graph, data, 2) for graph in (self.traced, self.optimized))
        for one, other in zip(before, after, strict=True):
            for head in range(self.num_kv_heads):
                pages = [item.pages(0, head).tolist() for item in (one, other)]
                if pages[0] != pages[1]:
                    found = f"pages {pages[1]} after passes, {pages[0]} before"
                    fix = "scores of the flow may be within rounding of each other; else a bug"
                    raise AttentionError(f"numeric, head {head}", found, "the same pages", fix)


@dataclass(frozen=True, slots=True)
class _Data:
    """Keys and values [tokens, heads, width], queries [steps, heads, query heads, width]."""

    keys: Array
    values: Array
    queries: Array
    prompt_queries: Array
    prompt: int

    @classmethod
    def drawn(cls, geometry: Geometry, heads: int, seed: int, *, whole: bool = False) -> "_Data":
        """Draw normal numbers, or small ``whole`` ones: their sums are exact in float32."""
        generator = np.random.default_rng(seed)

        def draw(*shape: int) -> Array:
            if whole:
                return generator.integers(-3, 4, shape).astype(np.float64)
            return generator.standard_normal(shape)

        prompt = NUM_PAGES * geometry.page_size - geometry.page_size // 2
        tokens = prompt + NUM_STEPS
        keys = draw(tokens, heads, geometry.key_dim)
        values = draw(tokens, heads, geometry.value_dim)
        if geometry.kind is FlowKind.MLA:
            values = keys[..., : geometry.value_dim]
        shape = (heads, geometry.query_heads, geometry.key_dim)
        return cls(keys, values, draw(NUM_STEPS, *shape), draw(prompt, *shape), prompt)

    def attention(self, found: StepOutput, step: int, geometry: Geometry) -> Array:
        """Dense softmax over the tokens of the pages that were read, in float64."""
        num_tokens = self.prompt + step + 1
        heads = range(self.keys.shape[1])
        rows = []
        for head in heads:
            pages = found.pages(0, head)
            tokens = (pages[:, None] * geometry.page_size + np.arange(geometry.page_size)).ravel()
            tokens = tokens[tokens < num_tokens]
            logits = self.queries[step, head] @ self.keys[tokens, head].T
            logits /= math.sqrt(geometry.key_dim)
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            rows.append(weights @ self.values[tokens, head])
        return np.stack(rows)


def _run(graph: Graph, data: _Data, topk: int) -> list[StepOutput]:
    plan = PlanSpec(budget=DefaultBudget(topk=topk), reserved=Reserved(1, 1))
    heads = data.keys.shape[1]
    spec = SessionSpec(num_kv_heads=heads, num_pages=NUM_PAGES + 2, plan=plan)
    session = Session(graph, spec)
    mla = graph.geometry.kind is FlowKind.MLA
    tokens = list(range(len(data.keys)))
    session.admit("verify", tokens[: data.prompt])
    step = session.begin({"verify": tokens[: data.prompt]}, prompt=True)
    pieces = (data.keys,) if mla else (data.keys, data.values)
    step.write(0, "verify", *(item[: data.prompt] for item in pieces))
    step.observe(0, "verify", data.prompt_queries)
    step.finish()
    outputs = []
    for index in range(NUM_STEPS):
        place = data.prompt + index
        step = session.begin({"verify": [tokens[place]]})
        step.write(0, "verify", *(item[place : place + 1] for item in pieces))
        # ones for whatever else the flow declares
        given = {name: np.ones((1, heads, *kind.shape)) for name, kind in graph.inputs}
        given["q"] = data.queries[index : index + 1]
        outputs.append(step.attend(0, {"verify": given})["verify"])
        step.finish()
    return outputs


def _reads_tokens_only(graph: Graph, *, every_page: bool) -> bool:
    """Whether the output is one softmax over the tokens of the pages that were read.

    With every page at hand nothing is estimated, and the query heads of a row read the same.
    """
    (first, *others) = graph.output.branches
    if others or first.gate is not None or first.selection is None:
        return False
    if first.estimate is not None:
        return every_page and first.estimate.over is EstimateOver.UNSELECTED
    return every_page or first.selection.type.shape == (1, 1)
