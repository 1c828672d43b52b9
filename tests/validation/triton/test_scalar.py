"""Scalars of Triton kernels hold against Triton's compiler, on drawn programs too."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tilewright.engine import EngineKind
from tilewright.errors import KernelError
from tilewright.validation import run as validate
from tilewright.validation.finding import OracleGroup
from tilewright.validation.triton.scalar import (
    FLOATS,
    INTEGERS,
    PROGRAMS,
    ScalarProgram,
    results_of,
)

ORACLES = tuple(each for each in validate.ORACLES if each.group is OracleGroup.TRITON)

small = st.integers(-100, 100).map(str)
floats = st.sampled_from(["0.1", "-2.5", "1e-3", "3.0", "0.0"])
divisors = st.sampled_from(["3", "-4", "(n - 11)", "5"])


def _pairs(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions of int32 scalars and literals, of two smaller ones."""
    ring = st.tuples(inner, st.sampled_from(["+", "-", "*", "&", "|", "^"]), inner)
    division = st.tuples(inner, st.sampled_from(["//", "%"]), divisors)
    shift = st.tuples(inner, st.sampled_from(["<<", ">>"]), st.sampled_from(["1", "3", "(n - 3)"]))
    comparison = st.tuples(inner, st.sampled_from(["<", ">=", "=="]), inner)
    pair = st.one_of(ring, division, shift).map(lambda parts: f"({' '.join(parts)})")
    choice = st.tuples(inner, comparison, inner).map(
        lambda parts: f"({parts[0]} if {' '.join(parts[1])} else {parts[2]})"
    )
    flag = comparison.map(lambda parts: f"(({' '.join(parts)}) + 0)")
    return st.one_of(pair, pair, choice, flag)


def expressions(*names: str) -> st.SearchStrategy[str]:
    atoms = st.one_of(small, st.sampled_from(["n", "C", *names]))
    return st.recursive(atoms, _pairs, max_leaves=5)


@st.composite
def programs(draw: st.DrawFn) -> ScalarProgram:
    """Variables, a loop that carries one of them, and a block that meets them all."""
    lines = [f"a = {draw(expressions())}", f"b = {draw(expressions('a'))} + a", "t = 0"]
    if draw(st.booleans()):
        lines.append(f"b += {draw(expressions('a'))}")
    start = draw(st.sampled_from(["-3, 6", "7, -2, -3", "n", "0, 9, 4"]))
    lines += [f"for i in range({start}):", f"    t = t % 97 + ({draw(expressions('a', 'i'))}) % 89"]
    lines.append(f"c: tl.constexpr = {draw(small)}")
    meets = draw(st.sampled_from(["x + c", "x * 2 - t", "x + a % 50", "(x ^ 5) + b % 50"]))
    lines.append(f"r = ({meets}) + t + a + b")
    if draw(st.booleans()):
        lines[-1] = f"r = (x + t.to(tl.int8)) * {draw(st.sampled_from(['1', 'c', 'b % 7']))}"
    return ScalarProgram(tuple(lines), (draw(st.sampled_from(INTEGERS)),), draw(st.integers(4, 9)))


@st.composite
def float_programs(draw: st.DrawFn) -> ScalarProgram:
    lines = [f"a = {draw(floats)} + {draw(expressions())} * {draw(floats)}", f"t = {draw(floats)}"]
    lines += ["for i in range(4):", f"    t = t * {draw(floats)} + {draw(floats)} * i + a"]
    literal = draw(floats)
    meets = [f"x * {literal}", "x + t", f"{literal} / n * x", "x * a", f"x * (t < {literal})"]
    lines.append(f"r = ({draw(st.sampled_from(meets))}) + {draw(st.sampled_from(['t', '0.5']))}")
    return ScalarProgram(tuple(lines), (draw(st.sampled_from(FLOATS)),), draw(st.integers(4, 9)))


def holds(program: ScalarProgram) -> bool:
    from triton.compiler.errors import CompilationError  # type: ignore[import-untyped]  # noqa: PLC0415

    (dtype,) = program.dtypes
    try:
        expected, found = results_of(program, dtype, EngineKind.NATIVE)
    except CompilationError:
        assume(False)  # Triton refuses it: a number that does not fit, one type and another
    except KernelError as error:
        assume("fits int32" not in str(error))  # an int32 that would wrap, which is refused here
        raise
    return np.array_equal(expected, found)


SETTINGS: dict[str, Any] = {
    "max_examples": 60,
    "deadline": None,
    "suppress_health_check": [HealthCheck.filter_too_much, HealthCheck.too_slow],
}


@settings(**SETTINGS)
@given(programs())
def test_drawn_programs_of_integers_give_what_the_ir_gives(program: ScalarProgram) -> None:
    assert holds(program)


@settings(**SETTINGS)
@given(float_programs())
def test_drawn_programs_of_floats_give_what_the_ir_gives(program: ScalarProgram) -> None:
    assert holds(program)


def test_every_program_of_the_group_holds_in_every_dtype() -> None:
    failed = [
        (oracle.name, finding.found)
        for oracle in ORACLES
        if not (finding := oracle.check(EngineKind.NATIVE)).ok
    ]
    assert failed == []
    assert len(PROGRAMS) >= 60


def test_without_triton_the_group_is_left_out_and_the_record_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(validate, "find_spec", lambda _: None)
    record = validate.run_oracles(
        EngineKind.NATIVE, group=OracleGroup.TRITON, progress=lambda _: None
    )
    assert record.ok
    assert record.oracles == ()
    assert record.skipped == (
        "triton: triton is not installed, so nothing is compared; see the extra [bench]",
    )


@pytest.mark.parametrize("old", ["3.7.1", "2.10.0", "3.8.0+git1234"])
def test_a_triton_that_is_too_old_is_not_compared_with_and_the_record_says_so(
    monkeypatch: pytest.MonkeyPatch, old: str
) -> None:
    monkeypatch.setattr(validate, "version", lambda _: old)
    record = validate.run_oracles(
        EngineKind.NATIVE, group=OracleGroup.TRITON, progress=lambda _: None
    )
    assert (record.ok, record.oracles) == (True, ())
    assert record.skipped == (
        f"triton: triton {old} lacks what 3.9 has, so nothing is compared; install triton>=3.9",
    )


@pytest.mark.parametrize("new", ["3.9", "3.10.0", "4.0.0", "3.9.0+cpu"])
def test_a_triton_that_is_new_enough_is_compared_with(
    monkeypatch: pytest.MonkeyPatch, new: str
) -> None:
    monkeypatch.setattr(validate, "version", lambda _: new)
    record = validate.run_oracles(
        EngineKind.NATIVE, group=OracleGroup.TRITON, progress=lambda _: None, oracles=ORACLES[:1]
    )
    assert (len(record.oracles), record.skipped) == (1, ())
