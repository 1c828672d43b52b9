"""Defaults of ready programs beside machines of few parts."""

import pytest

from tilewright.machine.spec import MachineSpec, PeSpec
from tilewright.machine.spec.pe import TcmSpec
from tilewright.programs import PROGRAMS
from tilewright.programs.fit import Offer, Values, double, fit_slot, halve

AHBM = MachineSpec()
RESERVED_4_KIB = MachineSpec(pe=PeSpec(tcm=TcmSpec(reserved_bytes=4096)))
CUBE_OF_TWO = Offer(sips=1, cubes=1, pes=2, machine=AHBM)


def defaults_of(name: str) -> Values:
    return {each.name: each.default for each in PROGRAMS[name].parameters}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_changes_on_the_machine_that_a_program_is_written_for(name: str) -> None:
    offer = Offer(sips=2, cubes=16, pes=8, machine=AHBM)
    assert PROGRAMS[name].fit.counts(offer, defaults_of(name)) == {}


@pytest.mark.parametrize("name", PROGRAMS)
def test_only_parameters_of_the_program_may_change(name: str) -> None:
    fit, names = PROGRAMS[name].fit, set(defaults_of(name))
    changed = {each for group in (*fit.tiles, *fit.sizes) for each in group}
    assert changed | set(fit.instead) | set(fit.parts) <= names
    one = Offer(sips=1, cubes=1, pes=1, machine=RESERVED_4_KIB)
    assert set(fit.counts(one, defaults_of(name))) <= names


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("flash_attention", {"cubes": 1}),
        ("allreduce_ring", {"ranks": 2}),
        ("allreduce_tree", {"ranks": 2}),
        ("allreduce_mesh", {"rows": 1, "columns": 2}),
        ("allreduce_cubes", {"cubes": 1}),
    ],
)
def test_a_program_takes_no_more_parts_than_there_are(name: str, changes: dict[str, int]) -> None:
    assert PROGRAMS[name].fit.counts(CUBE_OF_TWO, defaults_of(name)) == changes


def test_a_ring_takes_a_second_cube_or_sip_where_a_cube_has_one_pe() -> None:
    fit, defaults = PROGRAMS["ring_attention"].fit, defaults_of("ring_attention")
    one_pe = {"pes": 1, "machine": AHBM}
    assert fit.counts(Offer(sips=2, cubes=4, **one_pe), defaults) == {"cubes": 2}  # type: ignore[arg-type]
    assert fit.counts(Offer(sips=2, cubes=1, **one_pe), defaults) == {"sips": 2}  # type: ignore[arg-type]
    assert fit.counts(Offer(sips=1, cubes=1, **one_pe), defaults) == {}  # type: ignore[arg-type]


def test_slots_are_powers_of_two_that_leave_room_for_all_rings() -> None:
    offer = Offer(sips=1, cubes=1, pes=8, machine=RESERVED_4_KIB)
    assert fit_slot(offer, {"slot": 4096}, 3) == {"slot": 256}  # 3 rings of 4 slots in 4096 bytes
    assert fit_slot(offer, {"slot": 128}, 3) == {}


def test_the_first_group_is_halved_to_ones_before_the_next() -> None:
    values: dict[str, int] = {"rows": 4, "columns": 9, "size": 64}
    groups = (("rows", "columns"), ("size",))
    steps = []
    while changes := halve(values, groups, values.keys()):
        values = values | {name: int(value) for name, value in changes.items()}
        steps.append(tuple(values.values()))
    assert steps[:4] == [(4, 4, 64), (2, 4, 64), (2, 2, 64), (1, 2, 64)]
    assert steps[4:6] == [(1, 1, 64), (1, 1, 32)]
    assert steps[-1] == (1, 1, 1)


def test_what_is_not_free_stays() -> None:
    values = {"block": 8, "columns": 1024}
    assert halve(values, (("block",), ("columns",)), {"columns"}) == {"columns": 512}
    assert halve(values, (("block",),), {"columns"}) == {}
    assert double({"ways": 16}, {"ways": 64}, set()) == {}
    assert double({"ways": 32}, {"ways": 64}, {"ways"}) == {"ways": 64}
    assert double({"ways": 64}, {"ways": 64}, {"ways"}) == {}
