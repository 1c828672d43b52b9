import pytest

from tests.kernels.support import (
    PAGE,
    held_against_triton,
    held_here,
    page_with_tables,
    public_functions,
)


def test_the_page_of_the_language_is_current(request: pytest.FixtureRequest) -> None:
    """``pytest --update-golden`` rewrites its tables."""
    page = page_with_tables()
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page)
    assert PAGE.read_text() == page


def test_a_function_counts_only_if_a_kernel_calls_it() -> None:
    held = held_against_triton()
    assert "softmax" in held["exp"]
    assert all(name.startswith("fn_histogram") or name == "histogram" for name in held["histogram"])
    assert "device_print" not in held
    assert "composite" not in held


def test_a_helper_of_a_kernel_counts_as_the_kernels_own_words() -> None:
    held = held_against_triton()
    assert any(name.startswith("fn_hints") for name in held["static_range"])
    assert any("attention" in name for name in held["dot"])


def test_every_function_of_the_language_is_called_by_a_test() -> None:
    held = held_against_triton().keys() | held_here()
    assert sorted(public_functions().keys() - held) == []
