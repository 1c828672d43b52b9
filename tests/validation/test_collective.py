"""Collectives on paper: any ranks, sizes and rates, on both engines; and bounds that hold."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import every_engine
from tilewright.collectives.operation import Operation
from tilewright.collectives.plan import Move, Plan
from tilewright.engine import EngineKind, native_built
from tilewright.validation.collective import bound as collective_bound
from tilewright.validation.collective import closed_form as collective
from tilewright.validation.collective import run as collective_run
from tilewright.validation.collective.closed_form import Law, doubling_all_reduce, table_plan
from tilewright.validation.collective.run import Wiring, run_plans
from tilewright.validation.network import Network, full, neighbour_cycle

KIND = EngineKind.NATIVE if native_built() else EngineKind.REFERENCE
FLIT_RATES = (64_000, 32_000, 50_000, 128_000)  # a flit of 64 bytes takes whole picoseconds

wirings = st.builds(
    Wiring,
    latency_ps=st.integers(1, 2_000_000),
    bytes_per_us=st.sampled_from(FLIT_RATES),
    sum_ps_per_kib=st.sampled_from((0, 1_024, 16_384)),
    packet_flits=st.sampled_from((1, 16, 64)),
)


@every_engine
@pytest.mark.parametrize("law", collective.LAWS, ids=lambda law: law.name)
@settings(max_examples=10, deadline=None)
@given(wiring=wirings, ranks=st.sampled_from((4, 8, 16)), flits=st.integers(1, 40))
def test_an_algorithm_on_idle_wires_takes_its_closed_form(
    law: Law, kind: EngineKind, wiring: Wiring, ranks: int, flits: int
) -> None:
    num_bytes = ranks * flits * wiring.flit_bytes
    found_ps = law.run_ps(kind, wiring, ranks, num_bytes)
    assert found_ps == law.paper_ps(wiring, ranks, num_bytes)


@pytest.mark.parametrize("law", collective.LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize(
    "slower",
    [
        {"latency_ps": collective.EXAMPLE.latency_ps + 1_000},
        {"bytes_per_us": collective.EXAMPLE.bytes_per_us - 500},
    ],
)
def test_a_wire_a_little_slower_breaks_every_example(
    law: Law, slower: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert collective.check_example(KIND, law=law).ok
    monkeypatch.setattr(collective, "EXAMPLE", replace(collective.EXAMPLE, **slower))
    assert not collective.check_example(KIND, law=law).ok


def test_a_message_too_many_breaks_the_closed_form() -> None:
    law = collective.LAWS[0]
    there_and_back = replace(law, plan=lambda p: table_plan("ring", Operation.ALL_REDUCE, p))
    assert collective.check_exact(KIND, law=law).ok
    assert not collective.check_exact(KIND, law=there_and_back).ok


def test_sums_that_cost_more_break_what_sums_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = Law.paper_ps
    dearer = replace(collective.BUSY, sum_ps_per_kib=collective.BUSY.sum_ps_per_kib + 1_024)
    monkeypatch.setattr(Law, "paper_ps", lambda law, _wiring, *sizes: right(law, dearer, *sizes))
    for law in collective.LAWS:
        sums = law.gammas(16) != 0
        assert collective.check_exact(KIND, law=law).ok is not sums


def test_a_slower_link_moves_the_crossover_and_the_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    all_reduce = Operation.ALL_REDUCE
    assert collective.check_crossover(KIND).ok
    assert collective.check_both_ways(KIND, operation=all_reduce, figure="652.4").ok
    slower = replace(collective.EXAMPLE, bytes_per_us=49_000)
    monkeypatch.setattr(collective, "EXAMPLE", slower)
    monkeypatch.setattr(collective, "BOTH_WAYS", replace(collective.BOTH_WAYS, bytes_per_us=44_000))
    assert not collective.check_crossover(KIND).ok
    assert not collective.check_both_ways(KIND, operation=all_reduce, figure="652.4").ok


@pytest.mark.parametrize(("factor", "ok"), [(Fraction(7, 4), True), (Fraction(15, 8), False)])
def test_the_bus_factor_is_that_of_the_number_of_ranks(factor: Fraction, ok: bool) -> None:
    finding = collective.check_bus(KIND, ranks=8, operation=Operation.ALL_REDUCE, factor=factor)
    assert finding.ok is ok


# -- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", collective_bound.LAWS, ids=lambda law: law.name)
def test_wires_of_twice_the_rate_beat_every_bound(
    law: collective_bound.BoundLaw, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert collective_bound.check_runs(KIND, law=law, side=4).ok
    real = run_plans
    twice = replace(collective_bound.WIRING, bytes_per_us=2 * collective_bound.WIRING.bytes_per_us)
    monkeypatch.setattr(
        collective_bound,
        "run_plans",
        lambda kind, network, _wiring, *rest, **named: real(kind, network, twice, *rest, **named),
    )
    collective_bound.run_ps.cache_clear()
    assert not collective_bound.check_runs(KIND, law=law, side=4).ok
    collective_bound.run_ps.cache_clear()


@pytest.mark.parametrize("law", collective_bound.LAWS, ids=lambda law: law.name)
def test_a_network_with_other_wires_has_other_bounds(law: collective_bound.BoundLaw) -> None:
    other = replace(law, wraps=not law.wraps)
    assert collective_bound.check_count(KIND, law=law, side=4, figure=law.figures[0]).ok
    assert not collective_bound.check_count(KIND, law=other, side=4, figure=law.figures[0]).ok


@settings(max_examples=20, deadline=None)
@given(
    rows=st.sampled_from((2, 4)),
    columns=st.sampled_from((2, 4)),
    wraps=st.booleans(),
    algorithm=st.sampled_from(collective_bound.REDUCING),
    wiring=wirings,
)
def test_no_all_reduce_is_faster_than_what_its_wires_can_carry(
    rows: int, columns: int, wraps: bool, algorithm: str, wiring: Wiring
) -> None:
    network = Network(rows, columns, wraps=wraps)
    num_bytes = 64 * 2 * network.num_nodes**2
    plans = [table_plan(algorithm, Operation.ALL_REDUCE, network.num_nodes)]
    found_ps = run_plans(KIND, network, wiring, plans, num_bytes)
    unit_ps = Fraction(num_bytes * 10**6, wiring.bytes_per_us)
    assert found_ps >= collective_bound.over_all_links(network.graph) * unit_ps


# -- what the oracles stand on ---------------------------------------------------------------------


@given(rows=st.integers(1, 5), columns=st.integers(1, 5), wraps=st.booleans(), data=st.data())
def test_a_route_leads_from_its_source_to_its_target_over_wires_that_are_there(
    rows: int, columns: int, wraps: bool, data: st.DataObject
) -> None:
    network = Network(rows, columns, wraps=wraps)
    nodes = st.integers(0, network.num_nodes - 1)
    source, target = data.draw(nodes), data.draw(nodes)
    here = source
    for wire in network.route(source, target):
        start, end = network.wires[wire]
        assert start == here
        here = end
    assert here == target


@given(side=st.integers(2, 8))
def test_a_mesh_and_a_torus_have_the_wires_that_they_should(side: int) -> None:
    assert len(Network(side, side).wires) == 4 * side * (side - 1)
    if side > 2:
        assert len(Network(side, side, wraps=True).wires) == 4 * side**2
    assert len(full(side).wires) == side * (side - 1)


@given(rows=st.integers(2, 6), columns=st.sampled_from((2, 4, 6)))
def test_a_cycle_of_neighbours_has_every_node_once_and_only_single_wires(
    rows: int, columns: int
) -> None:
    network: Network = Network(rows, columns)
    cycle = neighbour_cycle(rows, columns)
    assert sorted(cycle) == list(range(network.num_nodes))
    pairs = zip(cycle, (*cycle[1:], cycle[0]), strict=True)
    assert all(len(network.route(*pair)) == 1 for pair in pairs)


def test_a_rank_sends_one_turn_after_the_other() -> None:
    """Two messages of one turn go at once, two of different turns do not."""
    wiring = Wiring(latency_ps=1_000, bytes_per_us=64_000)
    apart = doubling_all_reduce(4)
    together = Plan(
        apart.num_blocks, tuple(tuple(replace(step, turn=0) for step in s) for s in apart.steps)
    )
    one_ps = 1_000 + 4 * 64 * 1_000 // 64
    assert run_plans(KIND, full(4), wiring, [apart], 4 * 64) == 2 * one_ps
    assert run_plans(KIND, full(4), wiring, [together], 4 * 64) == one_ps


def test_what_is_taken_waits_for_no_sum() -> None:
    plan = table_plan("ring", Operation.ALL_GATHER, 4)
    assert all(step.move is not Move.COMBINE for steps in plan.steps for step in steps)
    plain = Wiring(latency_ps=1_000, bytes_per_us=64_000)
    times = [
        collective_run.run_plans(KIND, full(4), replace(plain, sum_ps_per_kib=ps), [plan], 4 * 64)
        for ps in (0, 10**6)
    ]
    assert times[0] == times[1]
