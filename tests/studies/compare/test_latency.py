"""Rows of a comparison with machines: what is simulated, kept, refused and put on the front."""

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pytest

from tilewright.attention.backends.machine import RowPlacement
from tilewright.errors import CodegenError, EngineError, UsageError
from tilewright.evaluation import SourceKind, SourceSpec
from tilewright.machine import build_machine, parse_machine
from tilewright.records import read_record
from tilewright.records.attention.compare import AttentionCompareRecord, CompareState
from tilewright.studies.compare.flows import CompareSpec, compare_flows
from tilewright.studies.latency import LatencyQuery, LatencySpec, NamedMachine, check_names

SIZES = SourceSpec(context=120, steps=4, cases=2, page_size=8)
LAYERS, KV_HEADS, PAGES = 2, 2, 16


@cache
def machine(name: str, *overrides: str) -> NamedMachine:
    given = (f"name={name}", *overrides)
    return NamedMachine(build_machine(parse_machine("ahbm-small", given)), "ahbm-small", given)


def spec_of(*names: str, **changes: object) -> CompareSpec:
    spec = CompareSpec(
        flows=("quest", "random", "oracle"),
        budgets=(4, 8),
        source=SourceKind.SYNTHETIC,
        sizes=SIZES,
        latency=LatencySpec(machines=tuple(map(machine, names))),
    )
    return replace(spec, **changes)  # type: ignore[arg-type]


@dataclass
class Clock:
    """A latency by pages that are read, and all that was asked."""

    queries: list[LatencyQuery] = field(default_factory=list)

    def __call__(self, query: LatencyQuery) -> int:
        self.queries.append(query)
        if query.step.is_dense:
            return 1000 * PAGES
        return 10 * sum(map(len, query.pages or ())) + len(query.step.graph.name)


def silent(done: int, total: int, what: str) -> None:
    del done, total, what


def compared(spec: CompareSpec, clock: Clock | None = None) -> AttentionCompareRecord:
    return compare_flows(spec, tell=silent, latency_of=Clock() if clock is None else clock)


def test_there_is_a_row_for_every_flow_and_budget_on_every_machine() -> None:
    record = compared(spec_of("first", "second"))
    asked = [
        (name, flow, budget)
        for name in ("first", "second")
        for flow in ("quest", "random", "oracle")
        for budget in (4, 8)
    ]
    assert [(row.machine, row.flow, row.budget) for row in record.rows] == asked
    assert record.latency is not None
    assert [one.name for one in record.latency.machines] == ["first", "second"]
    assert record.latency.tokens == 121
    assert record.versions.engine != "none"
    plain = compared(spec_of(latency=None))
    for row in record.rows:
        twin = next(one for one in plain.rows if (one.flow, one.budget) == (row.flow, row.budget))
        assert (row.mass, row.bytes, row.output_error) == (twin.mass, twin.bytes, twin.output_error)
        assert (twin.machine, twin.latency_ps, twin.latency_missing) == (None, None, None)


def test_a_step_reads_what_the_first_token_of_the_first_case_read(tmp_path: Path) -> None:
    clock, state = Clock(), tmp_path / "state.json"
    latency = LatencySpec(machines=(machine("one"),), batch=3, placement=RowPlacement.CUBE)
    record = compared(spec_of(latency=latency, state=state, budgets=(4,)), clock)
    trials = {one.flow: one for one in read_record(state, CompareState).trials if one.case == 0}
    dense, *sparse = clock.queries
    assert (dense.step.is_dense, dense.step.contexts) == (True, (121,) * 3)
    for query, row in zip(sparse, record.rows, strict=True):
        assert (query.step.contexts, query.budget) == ((121,) * 3, 4)
        assert query.step.placement is RowPlacement.CUBE
        first, last = trials[row.flow].first_pages
        assert query.pages == (*first, *last, *last)  # requests 0, 1, 2 of layers 0, 1, 1
        assert all(len(pages) == 4 for pages in query.pages)
        assert row.latency_selection == "recorded"
        assert row.dense_latency_ps == 1000 * PAGES
        assert query.step.graph.geometry.kv_dtype.value == "float16"


def test_layers_that_are_dense_lend_no_pages_and_without_others_pages_are_drawn() -> None:
    one, both = Clock(), Clock()
    two = LatencySpec(machines=(machine("one"),), batch=2)
    compared(spec_of(latency=two, flows=("quest",), budgets=(4,), dense_layers=1), one)
    assert [len(pages) for pages in one.queries[1].pages or ()] == [4] * 2 * KV_HEADS
    record = compared(spec_of("one", flows=("quest",), budgets=(4,), dense_layers=LAYERS), both)
    assert both.queries[1].pages is None
    assert record.rows[0].latency_selection == "uniform"


def test_a_second_run_simulates_only_what_the_first_has_not(tmp_path: Path) -> None:
    state, first, second, third = tmp_path / "state.json", Clock(), Clock(), Clock()
    before = compared(spec_of("one", state=state, flows=("quest",)), first)
    after = compared(spec_of("one", state=state), second)
    assert (len(first.queries), len(second.queries)) == (3, 4)
    assert (before.latencies_kept, after.latencies_kept) == (0, 3)
    again = compared(spec_of("one", state=state), third)
    assert third.queries == []
    assert again.rows == after.rows == compared(spec_of("one")).rows


@pytest.mark.parametrize(
    "changed",
    [
        LatencySpec(machines=(machine("one"),), batch=2),
        LatencySpec(machines=(machine("one"),), placement=RowPlacement.STRIPE),
        LatencySpec(machines=(machine("one", "pe.vector.lanes=64"),)),
    ],
    ids=["batch", "placement", "machine"],
)
def test_latencies_of_another_step_are_not_taken(tmp_path: Path, changed: LatencySpec) -> None:
    state, clock = tmp_path / "state.json", Clock()
    spec = spec_of("one", state=state, flows=("quest",), budgets=(4,))
    compared(spec)
    assert compared(replace(spec, latency=changed), clock).latencies_kept == 0
    assert len(clock.queries) == 2


def refuse_quest(query: LatencyQuery) -> int:
    if query.step.graph.name == "quest":
        raise CodegenError("flow 'quest'", "an op", "another", "run it elsewhere")
    return 7


def test_a_flow_that_cannot_be_compiled_has_a_reason_instead_of_a_latency(tmp_path: Path) -> None:
    spec = spec_of("one", flows=("quest", "random"), state=tmp_path / "state.json")
    for kept in (0, 3):  # what was refused is asked again
        record = compare_flows(spec, tell=silent, latency_of=refuse_quest)
        quest, random = record.rows[:2], record.rows[2:]
        assert record.status == "complete"
        assert record.latencies_kept == kept
        assert [row.latency_ps for row in quest] == [None, None]
        assert all("run it elsewhere" in (row.latency_missing or "") for row in quest)
        assert not any(row.is_pareto for row in quest)
        assert [(row.latency_ps, row.latency_missing) for row in random] == [(7, None)] * 2
        assert all(row.dense_latency_ps == 7 for row in record.rows)


def test_a_mistake_of_the_simulator_is_not_taken_for_a_refusal() -> None:
    def fail(query: LatencyQuery) -> int:
        raise EngineError("engine", f"a fault at {query.budget}", "none", "report it")

    with pytest.raises(EngineError):
        compare_flows(spec_of("one"), tell=silent, latency_of=fail)


def test_the_front_of_a_machine_is_by_its_own_time() -> None:
    def by_machine(query: LatencyQuery) -> int:
        if query.step.is_dense:
            return 1000
        is_slow = (
            query.machine.figures.name == "slow for oracle" and query.step.graph.name == "oracle"
        )
        return 900 if is_slow else 100

    names = ("even", "slow for oracle")
    machines = tuple(map(machine, names))
    spec = spec_of(latency=LatencySpec(machines=machines), flows=("quest", "oracle"), budgets=(4,))
    rows = compare_flows(spec, tell=silent, latency_of=by_machine).rows
    assert [(row.machine, row.flow) for row in rows if row.is_pareto] == [
        ("even", "oracle"),
        ("slow for oracle", "quest"),
        ("slow for oracle", "oracle"),
    ]


def test_a_row_that_is_slower_than_dense_attention_is_not_on_the_front() -> None:
    def slow_oracle(query: LatencyQuery) -> int:
        return {"oracle": 101, "quest": 99}.get(query.step.graph.name, 100)

    spec = spec_of("one", flows=("quest", "oracle"), budgets=(4,))
    rows = compare_flows(spec, tell=silent, latency_of=slow_oracle).rows
    assert {row.dense_latency_ps for row in rows} == {100}
    assert [(row.flow, row.is_pareto) for row in rows] == [("quest", True), ("oracle", False)]


def test_an_interrupted_simulation_shows_what_is_complete_and_is_continued(tmp_path: Path) -> None:
    clock, spec = Clock(), spec_of("one", state=tmp_path / "state.json")

    def cut(query: LatencyQuery) -> int:
        if len(clock.queries) == 3:
            raise KeyboardInterrupt
        return clock(query)

    record = compare_flows(spec, tell=silent, latency_of=cut)
    assert record.status == "interrupted"
    assert [row.latency_ps is None for row in record.rows] == [False] * 2 + [True] * 4
    assert all("interrupted" in (row.latency_missing or "") for row in record.rows[2:])
    rest = Clock()
    whole = compared(spec, rest)
    assert (whole.status, len(rest.queries)) == ("complete", 4)
    assert whole.rows == compared(spec_of("one")).rows


def test_two_machines_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two machines called 'one'"):
        check_names([machine("one"), machine("one", "pe.vector.lanes=64")])


def test_a_machine_says_what_a_refresh_of_its_memory_takes() -> None:
    assert machine("one").figures.refresh_ps == 530_000
    for override in ("cube.hbm.refresh.kind=none", "cube.hbm.model=simple"):
        assert machine("one", override).figures.refresh_ps == 0
    assert machine("one", "cube.hbm.refresh.kind=per_bank").figures.refresh_ps == 280_000


def test_flows_of_latent_attention_are_compared_on_drawn_latents() -> None:
    clock = Clock()
    flows = ("oracle_mla", "quest_mla", "random_mla")
    record = compared(spec_of("one", flows=flows, budgets=(4, 99)), clock)
    by_row = {(row.flow, row.budget): row for row in record.rows}
    assert all(by_row[flow, 99].output_error == 0.0 for flow in flows)
    assert by_row["oracle_mla", 4].mass > by_row["quest_mla", 4].mass
    assert by_row["quest_mla", 4].mass > by_row["random_mla", 4].mass
    assert record.latency is not None
    assert (record.latency.step.kv_heads, record.latency.step.key_dim) == (1, 576)
    assert {query.step.kv_heads for query in clock.queries} == {1}


def test_flows_of_two_kinds_are_refused() -> None:
    with pytest.raises(UsageError, match=r"quest \(gqa\), quest_mla \(mla\)"):
        compared(spec_of("one", flows=("quest", "quest_mla")))
