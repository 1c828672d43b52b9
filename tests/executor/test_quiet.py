import pytest
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from tilewright.executor.quiet import quiet_values


def num_blas_threads() -> tuple[int, ...]:
    """How many threads each loaded BLAS uses now."""
    libraries = threadpool_info()
    return tuple(each["num_threads"] for each in libraries if each["user_api"] == "blas")


def test_numpys_blas_is_found() -> None:
    assert num_blas_threads()


def test_threads_go_down_to_one_and_come_back() -> None:
    before = num_blas_threads()
    with quiet_values():
        assert set(num_blas_threads()) == {1}
        with quiet_values():
            assert set(num_blas_threads()) == {1}
        assert set(num_blas_threads()) == {1}
    assert num_blas_threads() == before


def fail_with_one_thread() -> None:
    with quiet_values():
        raise ZeroDivisionError


def test_a_failing_run_puts_back_what_was_there() -> None:
    before = num_blas_threads()
    with pytest.raises(ZeroDivisionError):
        fail_with_one_thread()
    assert num_blas_threads() == before
