"""Text from a language model whose decode steps attend under a flow."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from tilewright.attention.graph import Graph, graph_hash
from tilewright.attention.planner import PlanSpec, Reserved, StateAdvance
from tilewright.errors import ModelError
from tilewright.models import LanguageModel, MlaShape, ModelShape, choose_token, run_prompt
from tilewright.records.generate import (
    DecodePlanFigures,
    GenerateRecord,
    ModelFigures,
    SimulatedAttention,
)
from tilewright.serving.decode import FlowDecoder, geometry_of, kept_queries_of
from tilewright.serving.model_flow import (
    check_dense_layers,
    plan_dense,
    plan_pages,
    stand_in_for,
    trace_for_model,
)
from tilewright.studies.attention_trial import counted
from tilewright.studies.generate.latency import DecodedStep, RunOnMachines, simulate_run
from tilewright.studies.latency import (
    LatencyOf,
    LatencySpec,
    StepsOnMachines,
    simulate_latency,
    versions_of,
)

DENSE = "dense"
DEFAULT_BUDGET = 16

TextSink = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateSpec:
    """What to write, and how many pages a row may read meanwhile."""

    prompt: str
    flow: str = DENSE  # a ready flow, a flow file, or ``dense``
    flow_name: str | None = None  # which flow of a file with several
    budget: int = DEFAULT_BUDGET  # pages of a row, reserved ones included
    page_size: int = 16
    dense_layers: int = 0  # the first so many layers read every page
    max_tokens: int = 64
    temperature: float = 0.0
    seed: int = 0
    threads: int = 1  # of matrix products; another number may round otherwise
    reserved: Reserved = field(default_factory=Reserved)
    state_advance: StateAdvance = StateAdvance.VORTEX
    latency: LatencySpec | None = None  # None: nothing is simulated


@dataclass(slots=True)
class Written:
    """A text as it grows."""

    tokens: list[int] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    ended: bool = False
    steps: int = 0
    prompt_seconds: float = 0.0
    decode_seconds: float = 0.0
    ends: tuple[DecodedStep, ...] = ()  # the first and the last step


def generate(
    model: LanguageModel,
    spec: GenerateSpec,
    *,
    write: TextSink,
    latency_of: LatencyOf = simulate_latency,
) -> GenerateRecord:
    """Write a text behind a prompt; ``write`` gets its letters as they come.

    The prompt is dense whatever the flow; each later token attends to the pages that the flow
    selects. A budget of every page gives dense attention, bit for bit. With machines, attention of
    the first and the last step is simulated behind the text.
    """
    # logits that are not finite are refused, so nobody needs to hear of it twice
    quiet = np.errstate(over="ignore", invalid="ignore")
    with threadpool_limits(limits=spec.threads, user_api="blas"), quiet:
        return _generate(model, spec, write, latency_of)


def _generate(
    model: LanguageModel, spec: GenerateSpec, write: TextSink, latency_of: LatencyOf
) -> GenerateRecord:
    shape = model.shape
    run = _run_on_machines(shape, spec)
    prompt = _tokens_of(model, spec)
    label, graph = _graph(shape, spec)
    plan = _plan(shape, spec)
    written = Written()
    start = time.perf_counter()
    taken = run_prompt(model.weights, prompt, kept_queries=kept_queries_of(graph))
    capacity = len(prompt) + spec.max_tokens
    decoder = FlowDecoder(model.weights, graph, plan, taken, capacity=capacity)
    written.prompt_seconds = time.perf_counter() - start
    stream = model.tokenizer.stream(prompt)
    for token in _next_tokens(decoder, taken.logits, model.tokenizer.end_tokens, spec, written):
        letters = stream.add(token)
        written.text.append(letters)
        write(letters)
    simulated = () if run is None else simulate_run(run, written.ends, latency_of)
    return _record(shape, spec, label, graph, len(prompt), decoder, written, simulated)


def _next_tokens(
    decoder: FlowDecoder,
    logits: object,
    end_tokens: frozenset[int],
    spec: GenerateSpec,
    written: Written,
) -> Iterator[int]:
    rng = np.random.default_rng(spec.seed)
    while True:
        token = choose_token(np.asarray(logits), temperature=spec.temperature, rng=rng)
        if token in end_tokens:
            written.ended = True
            return
        written.tokens.append(token)
        yield token
        if len(written.tokens) == spec.max_tokens:
            return
        start = time.perf_counter()
        logits = decoder.step(token)
        written.decode_seconds += time.perf_counter() - start
        written.steps += 1
        step = DecodedStep(decoder.num_tokens, decoder.last_pages)
        written.ends = (*written.ends[:1], step)


def _tokens_of(model: LanguageModel, spec: GenerateSpec) -> list[int]:
    tokens = model.tokenizer.encode(spec.prompt)
    if not tokens:
        raise ModelError("prompt", "no tokens", "one or more", "write something")
    if len(tokens) + spec.max_tokens > model.shape.context:
        found = f"{len(tokens)} tokens and {spec.max_tokens} to write"
        expected = f"{model.shape.context} at most, what the model was made for"
        raise ModelError("prompt", found, expected, "shorten it, or ask for fewer tokens")
    return tokens


def _graph(shape: ModelShape, spec: GenerateSpec) -> tuple[str, Graph]:
    geometry = geometry_of(shape, spec.page_size)
    if spec.flow == DENSE:
        return DENSE, trace_for_model(stand_in_for(geometry.kind), geometry)[1]
    return trace_for_model(spec.flow, geometry, name=spec.flow_name)


def _run_on_machines(shape: ModelShape, spec: GenerateSpec) -> RunOnMachines | None:
    """Plan before the text, so that a flow that cannot be traced is told at once."""
    if spec.latency is None:
        return None
    common = StepsOnMachines.of(
        spec.latency,
        geometry_of(shape, spec.page_size),
        kv_heads=shape.kv_heads,
        dense_layers=_dense_layers(shape, spec),
        reserved=spec.reserved,
        state_advance=spec.state_advance,
        seed=spec.seed,
    )
    graph = None
    if spec.flow != DENSE:
        graph = trace_for_model(spec.flow, common.geometry, name=spec.flow_name)[1]
    return RunOnMachines(common=common, graph=graph, layers=shape.layers, budget=spec.budget)


def _dense_layers(shape: ModelShape, spec: GenerateSpec) -> int:
    check_dense_layers(spec.dense_layers, shape.layers)
    return shape.layers if spec.flow == DENSE else spec.dense_layers


def _plan(shape: ModelShape, spec: GenerateSpec) -> PlanSpec:
    if spec.flow == DENSE:
        return plan_dense(shape.layers, spec.reserved)
    return plan_pages(
        spec.budget,
        spec.reserved,
        dense_layers=_dense_layers(shape, spec),
        state_advance=spec.state_advance,
    )


def _record(
    shape: ModelShape,
    spec: GenerateSpec,
    label: str,
    graph: Graph,
    prompt_tokens: int,
    decoder: FlowDecoder,
    written: Written,
    simulated: tuple[SimulatedAttention, ...],
) -> GenerateRecord:
    is_dense = spec.flow == DENSE
    seconds = written.decode_seconds
    return GenerateRecord.of(
        spec,
        versions=versions_of(spec.latency),
        model=_model_figures(shape),
        flow=label,
        graph_hash=None if is_dense else graph_hash(graph),
        plan=DecodePlanFigures(
            page_size=spec.page_size,
            budget=None if is_dense else spec.budget,
            reserved_first=spec.reserved.first,
            reserved_last=spec.reserved.last,
            state_advance=spec.state_advance.value,
            dense_layers=_dense_layers(shape, spec),
        ),
        text="".join(written.text),
        prompt_tokens=prompt_tokens,
        tokens=tuple(written.tokens),
        ended=written.ended,
        steps=written.steps,
        **counted(
            decoder.counters, decoder.pages_in_rows, decoder.pages_in_rows * decoder.page_bytes
        ),
        prompt_seconds=written.prompt_seconds,
        decode_seconds=seconds,
        tokens_per_second=written.steps / seconds if written.steps else 0.0,
        simulated=simulated,
    )


def _model_figures(shape: ModelShape) -> ModelFigures:
    return ModelFigures.of(
        shape,
        attention="mla" if isinstance(shape, MlaShape) else "gqa",
        kv_heads=shape.kv_heads,
        parameters=shape.num_parameters,
    )
