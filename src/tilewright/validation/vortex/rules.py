"""Vortex's flow files: rows whose pages differ from those of a NumPy form, of which none may."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tilewright.attention.backends.reference import Session, SessionSpec, StepOutput
from tilewright.attention.flow import trace_flow
from tilewright.attention.graph import DType, Geometry, Graph
from tilewright.attention.planner import DefaultBudget, PlanSpec, Reserved
from tilewright.engine import EngineKind
from tilewright.interop.vortex import find_flow
from tilewright.validation.finding import Finding, Row, exact
from tilewright.validation.vortex.flows import FLOWS, Doubles, HeadSteps, VortexFlow

PAGE_SIZE, WIDTH, QUERY_HEADS, KV_HEADS = 8, 16, 3, 2
PROMPT, STEPS, BUDGET, REQUESTS = 98, 5, 3, 4  # 13 pages, and no page ends while steps run
FLOAT32 = dict.fromkeys(("kv_dtype", "query_dtype", "field_dtype"), DType.FLOAT32)
GEOMETRY = Geometry.gqa(page_size=PAGE_SIZE, head_dim=WIDTH, query_heads=QUERY_HEADS, **FLOAT32)

PLAN = PlanSpec(budget=DefaultBudget(topk=BUDGET), reserved=Reserved(1, 1))
SESSION = SessionSpec(num_kv_heads=KV_HEADS, num_pages=32, plan=PLAN)

Array = np.ndarray[Any, Any]


def load_graph(flow: VortexFlow) -> Graph:
    """Return the graph of a flow file, written to a directory of its own and loaded from there."""
    with TemporaryDirectory() as directory:
        for name, text in {"flow.py": flow.text, **flow.others}.items():
            file = Path(directory) / "mine" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        name, made = find_flow(str(Path(directory) / "mine" / "flow.py"))
        return trace_flow(made, GEOMETRY, name=name)


def check_selections(_kind: EngineKind, *, flow: VortexFlow) -> Finding:
    """Decode some requests, each alone, and count rows that read other pages than on paper."""
    graph = load_graph(flow)
    differing = 0
    for seed in range(REQUESTS):
        generator = np.random.default_rng(seed)
        keys = _drawn(generator, PROMPT + STEPS, KV_HEADS, WIDTH)
        queries = 2.0 * _drawn(generator, STEPS, KV_HEADS, QUERY_HEADS, WIDTH)
        decoded = decode(graph, SESSION, *([it.astype(np.float32)] for it in (keys, queries)))
        outputs = [found["0"] for _, found in decoded]
        for head in range(KV_HEADS):
            steps = HeadSteps(keys[:, head], queries[:, head], PROMPT + 1, PAGE_SIZE)
            wanted = [_best(scores) for scores in flow.score(steps)]
            read = [output.pages(0, head).tolist() for output in outputs]
            differing += sum(one != other for one, other in zip(read, wanted, strict=True))
    return exact(0, differing, f"of {REQUESTS * KV_HEADS * STEPS} rows")


def _drawn(generator: np.random.Generator, *shape: int) -> Doubles:
    """Normal numbers that float32 holds exactly."""
    return generator.normal(size=shape).astype(np.float32).astype(np.float64)


def _best(scores: Doubles) -> list[int]:
    """The first and the last page, and the best between them; the lower position wins a tie."""
    middle = range(1, len(scores) - 1)
    best = sorted(middle, key=lambda page: (-scores[page], page))[:BUDGET]
    return sorted([0, *best, len(scores) - 1])


def decode(
    graph: Graph, spec: SessionSpec, keys: Sequence[Array], queries: Sequence[Array]
) -> Iterator[tuple[Session, Mapping[str, StepOutput]]]:
    """Decode requests, numbered from 0, together; yield the session and the outputs of each step.

    A request has queries of its steps, and keys, which are its values too, of its prompt as well.
    """
    session, steps = Session(graph, spec), len(queries[0])
    for request, each in enumerate(keys):
        prompt = each[: len(each) - steps]
        tokens = range(1000 * request, 1000 * request + len(prompt))
        session.admit(str(request), tokens)
        step = session.begin({str(request): tokens}, prompt=True)
        step.write(0, str(request), prompt, prompt)
        step.finish()
    for index in range(steps):
        step = session.begin({str(request): [0] for request in range(len(keys))})
        for request, each in enumerate(keys):
            token = each[len(each) - steps + index][None]
            step.write(0, str(request), token, token)
        found = step.attend(0, {str(r): each[index : index + 1] for r, each in enumerate(queries)})
        step.finish()
        yield session, found


def oracles() -> Iterator[Row]:
    for name, flow in FLOWS.items():
        yield name, partial(check_selections, flow=flow)
