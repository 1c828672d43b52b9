"""Parameters of programs are read off signatures and set by text."""

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import BenchError
from tilewright.programs.parameter import (
    BenchParameter,
    ParameterValue,
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
