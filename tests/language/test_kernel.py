from typing import Any

import pytest

from tilewright.errors import KernelError
from tilewright.language.kernel import Constexpr, Kernel, kernel_of_function

LANGUAGE = object()


def plain(x_ptr: Any, n: Any, BLOCK: "tl.constexpr" = 64) -> None: ...  # type: ignore[name-defined]  # noqa: F821, N803


def with_language(tl: Any, x_ptr: Any, SIZE: Constexpr = 4) -> None: ...  # type: ignore[assignment]  # noqa: N803


def test_annotated_parameters_are_constants() -> None:
    kernel = kernel_of_function(plain, LANGUAGE)
    assert (kernel.name, kernel.constants) == ("plain", frozenset({"BLOCK"}))


def test_arguments_bind_by_place_and_by_name_and_defaults_apply() -> None:
    kernel = kernel_of_function(plain, LANGUAGE)
    assert kernel.bind((1,), {"n": 2}) == {"x_ptr": 1, "n": 2, "BLOCK": 64}
    assert kernel.bind((), {"BLOCK": 8, "n": 2, "x_ptr": 1})["BLOCK"] == 8


@pytest.mark.parametrize("option", ["num_warps", "num_stages", "num_ctas", "maxnreg", "debug"])
def test_options_of_a_launch_are_dropped_unless_they_are_parameters(option: str) -> None:
    kernel = kernel_of_function(plain, LANGUAGE)
    assert option not in kernel.bind((1, 2), {option: 4})

    def takes(num_warps: Any) -> None:
        del num_warps

    assert kernel_of_function(takes, LANGUAGE).bind((), {"num_warps": 4}) == {"num_warps": 4}


def test_the_language_is_given_and_does_not_count_as_an_argument() -> None:
    kernel = kernel_of_function(with_language, LANGUAGE)
    assert kernel.bind((7,), {}) == {"x_ptr": 7, "SIZE": 4, "tl": LANGUAGE}
    assert "tl" not in str(kernel.signature)
    assert kernel.constants == {"SIZE", "tl"}


def test_rules_add_constants_in_order_and_see_what_is_known() -> None:
    base = kernel_of_function(plain, LANGUAGE)
    rules = (lambda known: {"n": known["x_ptr"] + 1}, lambda known: {"BLOCK": known["n"] * 2})
    kernel = Kernel("k", plain, base.constants, rules, base.signature)
    assert kernel.bind((5,), {}) == {"x_ptr": 5, "n": 6, "BLOCK": 12}
    assert kernel.bind((5,), {"BLOCK": 3})["BLOCK"] == 3  # what the launch says holds


def variadic(*args: Any) -> None: ...
def keywords(**kwargs: Any) -> None: ...
def unnamed(x: Any, /) -> None: ...


@pytest.mark.parametrize("function", [variadic, keywords, unnamed])
def test_parameters_without_names_are_refused(function: Any) -> None:
    with pytest.raises(KernelError, match="expected parameters that have names"):
        kernel_of_function(function, LANGUAGE)


def test_a_constexpr_is_its_value() -> None:
    class Wrapped:
        value = 5

    assert Constexpr(7) == 7
    assert Constexpr(Wrapped()) == 5
