from typing import Any

import numpy as np
import pytest

from tests.kernels.case import KernelCase
from tests.kernels.ours import run_here
from tests.kernels.table import CASES
from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.errors import KernelError
from tilewright.language.dtype import dtype_of

N = 64


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_times_and_counters_are_the_same_with_and_without_values(case: KernelCase) -> None:
    call = (case.file, case.kernel, case.grid)
    _, result = run_here(*call, case.arguments())
    without, same = run_here(*call, case.arguments(), carries_data=False)
    assert same == result
    assert result.latency_ps > 0
    for name, given in case.arguments().items():
        if isinstance(given, np.ndarray) and dtype_of(given.dtype).is_floating():
            assert without[name].tobytes() == given.tobytes(), "a float was stored"


def run_without_data(kernel: Any, *values: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    bed = Bed()
    arrays = [bed.place(value) for value in values]
    bed.launch(kernel, *arrays, carries_data=False)
    return [bed.read(array) for array in arrays]


def branches(x_ptr: Any) -> None:
    if tl.load(x_ptr) > 0:
        tl.store(x_ptr, 1.0)


def masks_by_a_float(x_ptr: Any) -> None:
    n = tl.arange(0, N)
    tl.store(x_ptr + n, 1.0, mask=tl.load(x_ptr + n) > 0)


def counts_by_a_float(x_ptr: Any) -> None:
    for _ in range(tl.load(x_ptr).to(tl.int32)):
        pass


def indexes_by_a_float(x_ptr: Any) -> None:
    tl.load(x_ptr + tl.load(x_ptr + tl.arange(0, N)).to(tl.int32))


@pytest.mark.parametrize(
    "kernel", [branches, masks_by_a_float, counts_by_a_float, indexes_by_a_float]
)
def test_a_float_that_decides_is_an_error_that_says_so(kernel: Any) -> None:
    with pytest.raises(KernelError) as caught:
        run_without_data(kernel, np.ones(N, np.float32))
    assert "in a run that has only times" in caught.value.found
    assert "let only integers decide" in caught.value.fix
    assert f"in {kernel.__name__}, program (0,)" in caught.value.where


def test_integers_keep_their_values() -> None:
    def kernel(table_ptr: Any, out_ptr: Any) -> None:
        n = tl.arange(0, N)
        table = tl.load(table_ptr + n)
        if tl.sum(table) > 0:
            tl.store(out_ptr + n, tl.load(table_ptr + table) * 2 + tl.cumsum(table, 0))

    table = np.arange(N, dtype=np.int32)[::-1].copy()
    _, out = run_without_data(kernel, table, np.zeros(N, np.int32))
    np.testing.assert_array_equal(out, table[table] * 2 + np.cumsum(table))


def test_floats_in_memory_stay_what_they_are_even_where_a_constant_is_stored() -> None:
    def kernel(x_ptr: Any, n_ptr: Any) -> None:
        tl.store(x_ptr, 5.0)
        tl.atomic_add(x_ptr + 1, 5.0)
        tl.atomic_add(n_ptr, 5)

    x, n = run_without_data(kernel, np.ones(2, np.float32), np.ones(1, np.int32))
    assert (x.tolist(), n.tolist()) == ([1, 1], [6])


def test_a_print_of_floats_shows_their_type_alone(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x_ptr: Any) -> None:
        x = tl.load(x_ptr + tl.arange(0, 4))
        tl.device_print("x: ", x, tl.arange(0, 3))

    run_without_data(kernel, np.ones(N, np.float32))
    assert capsys.readouterr().out == "pid (0,) x: <Block fp32[4]> [0 1 2]\n"
