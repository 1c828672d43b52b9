from functools import cache

import pytest

from tilewright.collectives.algorithm import AUTO_ALGORITHM, checked_plan
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.choose import Chooser, LaneCall, placed_call, shape_of
from tilewright.collectives.cost import lane_plans, message_ps
from tilewright.collectives.group import Group, sip_ranks
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.tuning import Tuning, TuningSpec
from tilewright.device.ipcq import RingSpec
from tilewright.errors import CollectiveError
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.parse import parse_machine

MIB = 2**20
LANES = tuple(range(128))
COLUMNS = dict.fromkeys(("mesh", "torus"), ("fabric.columns=4",))


@cache
def machine_of(name: str, *overrides: str) -> Machine:
    return build_machine(parse_machine(name, overrides))


def sips_of(machine: Machine) -> Group:
    num_sips = machine.grid.num_sips
    return Group("world", sip_ranks(machine.grid, num_sips), tuple(range(num_sips)))


def pes_of(machine: Machine, num_ranks: int) -> Group:
    places = tuple((machine.grid.coord(flat),) for flat in range(num_ranks))
    return Group("world", places, tuple(range(num_ranks)))


def test_the_busiest_link_of_a_torus_carries_what_lanes_of_both_orders_send() -> None:
    """7/16 of lanes send 4/6 of a shard along rows, the others 2/6; twice, over two links.

    Each fragment of 4 KiB is answered by a credit of a flit.
    """
    machine = machine_of("ahbm-6sip")
    call = Call(Operation.ALL_REDUCE, 6, shape=(2, 3))
    plans = {lane: checked_plan(ALGORITHMS["torus_2d"], call, lane).plan for lane in range(128)}
    lanes = lane_plans(machine, sips_of(machine), plans, RingSpec())
    beta_ps = lanes[0].busiest * (8 * MIB // 128)
    sent = 7 / 16 * 4 / 6 + 9 / 16 * 2 / 6
    links_ps = 2 * sent * 8 * MIB / 256e9 * 1e12
    assert float(beta_ps) == pytest.approx(links_ps * (1 + 64 / 4096), rel=1e-9)


@pytest.mark.parametrize("name", ["ahbm", "ahbm-6sip"])
def test_auto_takes_the_least_prediction_and_names_the_others(name: str) -> None:
    machine = machine_of(name)
    group = sips_of(machine)
    call = Call(Operation.ALL_REDUCE, group.size, shape=shape_of(group, machine))
    chooser = Chooser(machine, ALGORITHMS)
    choice = chooser.choose(
        AUTO_ALGORITHM, LaneCall(call, group, LANES, 64 * 1024, 4), TuningSpec()
    )
    times = [each.total_ps for each in choice.predictions]
    assert times == sorted(times)
    assert choice.predictions[0].algorithm == choice.algorithm.name
    assert {each.algorithm for each in choice.predictions} == set(ALGORITHMS)
    assert choice.reason.startswith(f"{choice.algorithm.name}: the least of ")


@pytest.mark.parametrize(("kind", "least"), [("switch", "direct"), ("ring", "bidirectional_ring")])
def test_where_links_decide_the_fewest_receivers_are_taken_of_those_within_a_tenth(
    kind: str, least: str
) -> None:
    machine = machine_of("ahbm", "sip.count=5", f"fabric.kind={kind}")
    group = sips_of(machine)
    call = placed_call(Call(Operation.ALL_REDUCE, 5), group, machine)
    chooser = Chooser(machine, ALGORITHMS)
    large, small = (
        chooser.choose(AUTO_ALGORITHM, LaneCall(call, group, LANES, num_bytes, 4), TuningSpec())
        for num_bytes in (MIB // 2, 64)
    )
    assert (large.predictions[0].algorithm, large.algorithm.name) == (least, "ring")
    assert large.reason.startswith("ring: the fewest receivers of those within a tenth, of ")
    assert small.predictions[0].algorithm == small.algorithm.name


def test_small_calls_take_fewer_turns_than_large_ones() -> None:
    machine = machine_of("ahbm-8sip")
    group = Group("pes", tuple((PeCoord(sip, 0, 0),) for sip in range(8)), tuple(range(8)))
    call = Call(Operation.ALL_REDUCE, 8)
    chooser = Chooser(machine, ALGORITHMS)
    small, large = (
        chooser.choose(AUTO_ALGORITHM, LaneCall(call, group, (0,), num_bytes, 4), TuningSpec())
        for num_bytes in (64, 64 * MIB)
    )
    assert small.predictions[0].alpha_ps < large.predictions[0].alpha_ps


def test_a_named_algorithm_is_taken_without_predictions() -> None:
    machine = machine_of("ahbm")
    group = sips_of(machine)
    chooser = Chooser(machine, ALGORITHMS)
    choice = chooser.choose(
        "ring", LaneCall(Call(Operation.ALL_REDUCE, 2), group, LANES, 1024, 4), TuningSpec()
    )
    assert (choice.algorithm.name, choice.predictions) == ("ring", ())


def test_an_unknown_algorithm_is_refused() -> None:
    machine = machine_of("ahbm")
    chooser = Chooser(machine, ALGORITHMS)
    with pytest.raises(CollectiveError, match="rign"):
        chooser.choose(
            "rign",
            LaneCall(Call(Operation.ALL_REDUCE, 2), sips_of(machine), LANES, 1024, 4),
            TuningSpec(),
        )


def test_one_pe_alone_gets_slots_for_all_that_its_link_has_under_way() -> None:
    machine = machine_of("ahbm")
    group = Group("pair", ((PeCoord(0, 0, 0),), (PeCoord(1, 0, 0),)), (0, 1))
    call = Call(Operation.ALL_REDUCE, 2)
    chooser = Chooser(machine, ALGORITHMS)
    alone = chooser.choose("ring", LaneCall(call, group, (0,), 8 * MIB, 4), TuningSpec()).tuning
    shared = chooser.choose(
        "ring", LaneCall(call, sips_of(machine), LANES, 8 * MIB, 4), TuningSpec()
    ).tuning
    assert alone.ring.num_bytes >= 128_000 * 1_000_000 // 10**6  # a link's bytes in 1 us
    assert shared.ring.num_bytes == 2 * shared.chunk_bytes  # one is read, one arrives


def test_a_lead_is_what_a_link_sends_while_a_message_travels() -> None:
    machine = machine_of("ahbm")
    pes = PeCoord(0, 0, 0), PeCoord(1, 0, 0)
    group = Group("pair", ((pes[0],), (pes[1],)), (0, 1))
    call = Call(Operation.ALL_REDUCE, 2)
    tuning = Chooser(machine, ALGORITHMS).choose(
        "ring", LaneCall(call, group, (0,), 64 * 1024, 4), TuningSpec()
    ).tuning  # fmt: skip
    sent_bytes = message_ps(machine, *pes) * 128 // 1000
    assert tuning.chunk_bytes == -(-32 * 1024 // 3)
    assert tuning.lead == sent_bytes // tuning.chunk_bytes + 1 > 2


def test_many_ranks_take_what_suits_them_without_predictions() -> None:
    machine = machine_of("ahbm")
    group = pes_of(machine, 128)
    call = Call(Operation.ALL_REDUCE, 128, shape=shape_of(group, machine))
    choice = Chooser(machine, ALGORITHMS).choose(
        AUTO_ALGORITHM, LaneCall(call, group, (0,), 1024, 4), TuningSpec()
    )
    assert (choice.algorithm.name, choice.predictions) == ("hierarchical", ())


def test_ranks_lie_as_the_machine_says() -> None:
    torus, small = machine_of("ahbm-6sip"), machine_of("ahbm-small")
    assert shape_of(sips_of(torus), torus) == (2, 3)
    assert shape_of(pes_of(small, 16), small) == (1, 2, 2, 4)
    assert shape_of(pes_of(small, 5), small) == ()
    assert shape_of(Group("one", ((PeCoord(0, 1, 0),),), (0,)), small) == ()


@pytest.mark.parametrize(
    ("kind", "is_open"), [("mesh", True), ("torus", False), ("ring", False), ("switch", False)]
)
def test_only_a_mesh_leaves_the_ends_of_its_rows_apart(kind: str, is_open: bool) -> None:
    machine = machine_of("ahbm-small", "sip.count=4", f"fabric.kind={kind}", *COLUMNS.get(kind, ()))
    call = placed_call(Call(Operation.ALL_REDUCE, 4), sips_of(machine), machine)
    assert (call.shape, call.is_open) == ((1, 4), is_open)
    of_pes = placed_call(Call(Operation.ALL_REDUCE, 4), pes_of(machine, 4), machine)
    assert not of_pes.is_open


@pytest.mark.parametrize("num_sips", [3, 4])
@pytest.mark.parametrize(
    "operation", [Operation.ALL_REDUCE, Operation.REDUCE_SCATTER, Operation.ALL_GATHER]
)
def test_neighbours_on_a_line_are_predicted_to_beat_a_ring_both_ways(
    operation: Operation, num_sips: int
) -> None:
    """A rank may get two parts of one sum in one turn, and sends to both sides at once."""
    columns = f"fabric.columns={num_sips}"
    machine = machine_of("ahbm-small", f"sip.count={num_sips}", "fabric.kind=mesh", columns)
    group, chooser = sips_of(machine), Chooser(machine, ALGORITHMS)
    call = placed_call(Call(operation, num_sips), group, machine)
    line, ring = (
        chooser.predict(
            ALGORITHMS[name], LaneCall(call, group, range(16), 64 * 1024, 4), Tuning()
        ).total_ps
        for name in ("ring", "bidirectional_ring")
    )
    assert 0 < line < ring


def test_a_plan_takes_as_long_as_the_lane_that_has_farthest_to_go() -> None:
    """Lanes 0 and 64 have one plan; the second is two cubes farther from the IO chiplet."""
    machine = machine_of("ahbm")
    call, chooser = Call(Operation.ALL_REDUCE, 2), Chooser(machine, ALGORITHMS)
    alphas = {
        lanes: chooser.predict(
            ALGORITHMS["ring"], LaneCall(call, sips_of(machine), lanes, 64, 4), Tuning()
        ).alpha_ps
        for lanes in ((0,), (64,), (0, 64))
    }
    assert alphas[0,] < alphas[64,] == alphas[0, 64]
