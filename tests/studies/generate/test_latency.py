"""Time of a text's attention on machines: layers, times one layer's step at the ends of the run."""

from dataclasses import dataclass, field
from functools import cache

import pytest

from tests.models.gguf_making import tiny_metadata, tiny_tensors, write_gguf
from tilewright.attention.backends.machine import RowPlacement
from tilewright.errors import CodegenError
from tilewright.machine import build_machine, parse_machine
from tilewright.models import LanguageModel, load_model
from tilewright.records.generate import GenerateRecord, SimulatedAttention
from tilewright.studies.generate.text import GenerateSpec, generate
from tilewright.studies.latency import LatencyQuery, LatencySpec, NamedMachine

PROMPT = "the hat of the cat that sat there at ten"
LAYERS = 2


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    return load_model(str(write_gguf(path, tiny_metadata(), tiny_tensors())))


@cache
def machine() -> NamedMachine:
    return NamedMachine(build_machine(parse_machine("ahbm-small")), "ahbm-small")


@dataclass
class Clock:
    """A dense step takes 100 ps a token, one under a flow 7 for each page that it reads."""

    queries: list[LatencyQuery] = field(default_factory=list)

    def __call__(self, query: LatencyQuery) -> int:
        self.queries.append(query)
        if query.step.is_dense:
            return 100 * query.step.contexts[0]
        return 7 * sum(map(len, query.pages or ()))


def unheard(letters: str) -> None:
    del letters


def written(model: LanguageModel, clock: Clock, **changes: object) -> GenerateRecord:
    latency = LatencySpec(machines=(machine(),), placement=RowPlacement.STRIPE)
    given = {"flow": "quest", "budget": 3, "page_size": 4, "max_tokens": 6, **changes}
    spec = GenerateSpec(prompt=PROMPT, latency=latency, **given)  # type: ignore[arg-type]
    return generate(model, spec, write=unheard, latency_of=clock)


def only(record: GenerateRecord) -> SimulatedAttention:
    (found,) = record.simulated
    return found


def test_a_token_takes_as_many_steps_as_there_are_layers(model: LanguageModel) -> None:
    clock = Clock()
    record = written(model, clock)
    found, prompt = only(record), record.prompt_tokens
    assert [one.tokens for one in found.lengths] == [prompt + 1, prompt + record.steps]
    assert found.latency_ps == LAYERS * 7 * 3 * 2  # pages of a row, KV heads
    assert found.dense_latency_ps == LAYERS * 100 * (prompt + 1 + prompt + record.steps) // 2
    assert {one.selection for one in found.lengths} == {"recorded"}
    assert {query.step.placement for query in clock.queries} == {RowPlacement.STRIPE}
    assert all(len(pages) == 3 for query in clock.queries for pages in query.pages or ())
    assert (found.layers, found.dense_layers, found.step.batch) == (LAYERS, 0, 1)


def test_dense_layers_take_the_time_of_dense_attention(model: LanguageModel) -> None:
    found = only(written(model, Clock(), dense_layers=1))
    first, last = found.lengths
    assert found.dense_layers == 1
    assert found.latency_ps == 7 * 3 * 2 + 100 * (first.tokens + last.tokens) // 2


@pytest.mark.parametrize("changes", [{"flow": "dense"}, {"dense_layers": LAYERS}])
def test_without_a_sparse_layer_a_token_takes_the_time_of_dense_attention(
    model: LanguageModel, changes: dict[str, object]
) -> None:
    clock = Clock()
    found = only(written(model, clock, **changes))
    assert all(query.step.is_dense for query in clock.queries)
    assert found.latency_ps == found.dense_latency_ps is not None
    assert [one.latency_ps for one in found.lengths] == [None, None]


def test_a_run_of_one_step_is_simulated_once_and_one_without_any_says_so(
    model: LanguageModel,
) -> None:
    assert len(only(written(model, Clock(), max_tokens=2)).lengths) == 1
    found = only(written(model, Clock(), max_tokens=1))
    assert (found.lengths, found.latency_ps, found.dense_latency_ps) == ((), None, None)
    assert found.missing is not None
    assert "no token was decoded" in found.missing


def test_a_flow_that_cannot_be_compiled_leaves_the_text_and_gives_the_reason(
    model: LanguageModel,
) -> None:
    def refuse(query: LatencyQuery) -> int:
        if query.step.is_dense:
            return 5
        raise CodegenError("flow", "an op", "another", "run it elsewhere")

    spec = GenerateSpec(
        prompt=PROMPT,
        flow="quest",
        page_size=4,
        max_tokens=4,
        latency=LatencySpec(machines=(machine(),)),
    )
    record = generate(model, spec, write=unheard, latency_of=refuse)
    found = only(record)
    assert len(record.tokens) == 4
    assert (found.latency_ps, found.dense_latency_ps) == (None, LAYERS * 5)
    assert "run it elsewhere" in (found.missing or "")


def test_without_machines_nothing_is_simulated(model: LanguageModel) -> None:
    def never(query: LatencyQuery) -> int:
        raise AssertionError(query)

    spec = GenerateSpec(prompt=PROMPT, flow="quest", page_size=4, max_tokens=3)
    record = generate(model, spec, write=unheard, latency_of=never)
    assert (record.simulated, record.versions.engine) == ((), "none")


def test_pages_of_a_step_are_those_that_were_counted(model: LanguageModel) -> None:
    clock = Clock()
    record = written(model, clock, max_tokens=2, budget=4)
    (sparse,) = [query for query in clock.queries if not query.step.is_dense]
    rows = sparse.pages or ()
    assert len(rows) == 2
    assert sum(map(len, rows)) * LAYERS == record.pages.read
    last = -(-sparse.step.contexts[0] // 4) - 1
    assert all({0, last} <= set(pages) for pages in rows)  # reserved
