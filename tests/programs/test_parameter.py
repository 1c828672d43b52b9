"""Parameters of programs are read off signatures, set by text, and fitted to small machines."""

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import BenchError
from tilewright.machine.spec import MachineSpec, PeSpec
from tilewright.machine.spec.pe import TcmSpec
from tilewright.programs import PROGRAMS
from tilewright.programs.parameter import (
    BenchParameter,
    Offer,
    ParameterValue,
    Values,
    double,
    fit_slot,
    halve,
    parameters_of,
    parse_parameters,
)


def _run(  # type: ignore[no-untyped-def]  # `tag` is as a user's file may have it
    torch: Any,
    m: Annotated[int, "rows of A"] = 128,
    *,
    dtype: Literal["f16", "f32"] = "f16",
    causal: bool = True,
    scale: float = 0.5,
    tag="plain",
) -> None:
    del torch, m, dtype, causal, scale, tag


def test_a_signature_gives_names_types_defaults_choices_and_help_in_order() -> None:
    assert parameters_of(_run, where="bench") == (
        BenchParameter("m", int, 128, "rows of A"),
        BenchParameter("dtype", str, "f16", "", ("f16", "f32")),
        BenchParameter("causal", bool, True),
        BenchParameter("scale", float, 0.5),
        BenchParameter("tag", str, "plain"),
    )


def test_what_is_not_set_keeps_its_default_and_what_is_set_has_its_type() -> None:
    texts = {"m": "64", "causal": "False", "scale": "2"}
    parsed = parse_parameters(parameters_of(_run, where="bench"), texts, where="bench")
    assert parsed == {"m": 64, "dtype": "f16", "causal": False, "scale": 2.0, "tag": "plain"}
    assert [type(value) for value in parsed.values()] == [int, str, bool, float, str]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"m": "many"}, "bench: found m=many, expected an integer; write it like m=128"),
        ({"m": "1.5"}, "expected an integer"),
        ({"causal": "yes"}, "expected true or false"),
        ({"scale": "wide"}, "expected a number"),
        ({"dtype": "f8"}, "expected one of f16, f32"),
        ({"n": "1"}, "found a parameter 'n', expected one of m, dtype, causal, scale, tag"),
    ],
)
def test_a_text_that_does_not_fit_is_refused(texts: dict[str, str], message: str) -> None:
    with pytest.raises(BenchError, match=message):
        parse_parameters(parameters_of(_run, where="bench"), texts, where="bench")


def test_a_parameter_without_a_default_is_refused() -> None:
    def run(torch: Any, m: int) -> None:
        del torch, m

    with pytest.raises(BenchError, match="a parameter 'm' without a default"):
        parameters_of(run, where="mine.py")


def test_open_parameters_are_refused() -> None:
    def run(torch: Any, **rest: int) -> None:
        del torch, rest

    with pytest.raises(BenchError, match="a parameter 'rest'"):
        parameters_of(run, where="mine.py")


def test_a_default_of_another_type_is_refused() -> None:
    def run(torch: Any, m: int = 1.5) -> None:  # type: ignore[assignment]
        del torch, m

    with pytest.raises(BenchError, match=r"a parameter 'm' of type .*int.* with the default 1.5"):
        parameters_of(run, where="mine.py")


@given(
    value=st.one_of(
        st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(alphabet="abc_")
    )
)
def test_a_value_written_as_text_comes_back_the_same(value: ParameterValue) -> None:
    parameter = BenchParameter("x", type(value), value)
    assert parameter.parse(str(value), where="bench") == value


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
