import pytest

from tilewright.executor.quiet import num_blas_threads, one_blas_thread


def test_numpys_blas_is_found() -> None:
    assert num_blas_threads()


def test_threads_go_down_to_one_and_come_back() -> None:
    before = num_blas_threads()
    with one_blas_thread():
        assert set(num_blas_threads()) == {1}
        with one_blas_thread():
            assert set(num_blas_threads()) == {1}
        assert set(num_blas_threads()) == {1}
    assert num_blas_threads() == before


def fail_with_one_thread() -> None:
    with one_blas_thread():
        raise ZeroDivisionError


def test_a_failing_run_puts_back_what_was_there() -> None:
    before = num_blas_threads()
    with pytest.raises(ZeroDivisionError):
        fail_with_one_thread()
    assert num_blas_threads() == before
