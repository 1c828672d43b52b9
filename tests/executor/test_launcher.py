import re
from typing import Any

import numpy as np
import pytest

from tests.executor.test_quiet import num_blas_threads
from tests.kinds import needs_both_engines
from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.errors import KernelError, KernelTypeError, PageFaultError, TilewrightError
from tilewright.machine.coords import PeCoord

N = 64


def copy(x_ptr: Any, out_ptr: Any) -> None:
    n = tl.arange(0, N)
    tl.store(out_ptr + n, tl.load(x_ptr + n))


def ones(n: int = N) -> np.ndarray[Any, Any]:
    return np.ones(n, np.float32)


def line_of(text: str) -> int:
    """The line of this file that says it."""
    with open(__file__) as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


# -- arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ((), "missing a required argument: 'x_ptr'"),
        ((1, 2, 3), "too many positional arguments"),
        ((object(), 2), "x_ptr = <object object at .*> of type object"),
        ((ones(), 2), r"x_ptr, an array of float32\[64\] that is not on the device"),
        ((1, {"a": 1}), "out_ptr = {'a': 1} of type dict"),
        ((1, (2, [3])), r"out_ptr\[1\] = \[3\] of type list"),
        ((1, 2**64), r"out_ptr = 18446744073709551616"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_runs(
    args: tuple[Any, ...], found: str
) -> None:
    bed = Bed()
    with pytest.raises(KernelError, match=f"kernel 'copy': found {found}"):
        bed.launch(copy, *args)
    assert bed.launch(copy, *[bed.place(ones()) for _ in range(2)]).latency_ps > 0


def test_parameters_that_have_only_names_get_their_arguments() -> None:
    def scale(x_ptr: Any, out_ptr: Any, *, factor: Any, shift: Any = 2.0) -> None:
        n = tl.arange(0, N)
        tl.store(out_ptr + n, tl.load(x_ptr + n) * factor + shift)

    bed = Bed()
    x, out = bed.place(ones()), bed.place(ones())
    bed.launch(scale, x, out_ptr=out, factor=3.0)
    np.testing.assert_array_equal(bed.read(out), 5 * ones())


def test_an_array_that_was_freed_is_refused() -> None:
    bed = Bed()
    x, out = bed.place(ones()), bed.place(ones())
    bed.workspace.free(x)
    with pytest.raises(KernelError, match=r"an array at 0x[0-9a-f]+ that was freed"):
        bed.launch(copy, x, out)
    with pytest.raises(KernelError, match="that was freed"):
        bed.workspace.free(x)
    with pytest.raises(KernelError, match="that was freed"):
        bed.read(x)


def test_the_pages_of_a_freed_array_can_be_taken_again() -> None:
    bed = Bed(num_pes=2)
    first = bed.place(np.full(40_000, 1, np.float32))
    out = bed.place(ones())
    bed.launch(copy, first, out)  # the TLB knows its pages
    bed.workspace.free(first)
    second = bed.place(np.full(40_000, 2, np.float32))
    bed.launch(copy, second, out)
    np.testing.assert_array_equal(bed.read(out), np.full(N, 2, np.float32))


def test_an_array_of_a_dtype_that_no_kernel_knows_is_refused() -> None:
    with pytest.raises(KernelTypeError, match="complex64"):
        Bed().place(np.ones(4, np.complex64))


def test_tuples_of_arrays_and_numbers_are_arguments() -> None:
    def kernel(pair: Any, scale: Any) -> None:
        x_ptr, out_ptr = pair
        n = tl.arange(0, N)
        tl.store(out_ptr + n, tl.load(x_ptr + n) * scale)

    bed = Bed()
    x, out = bed.place(ones()), bed.place(ones())
    bed.launch(kernel, (x, out), np.float32(3))
    np.testing.assert_array_equal(bed.read(out), 3 * ones())


# -- the grid ----------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [(), (1, 1, 1, 1), (-1,), (1.5,), (True,), "4", None])
def test_what_is_no_grid_is_refused(grid: Any) -> None:
    with pytest.raises(KernelError, match=r"the grid .*, expected 1 to 3 integers of at least 0"):
        Bed().launch(lambda: None, grid=grid)


def test_a_grid_without_programs_takes_no_time() -> None:
    def kernel(out_ptr: Any) -> None:
        tl.store(out_ptr, 7.0)

    bed = Bed()
    out = bed.place(ones())
    result = bed.launch(kernel, out, grid=(4, 0))
    assert (result.latency_ps, result.counters.commands) == (0, 0)
    np.testing.assert_array_equal(bed.read(out), ones())


def test_a_grid_is_a_function_of_the_arguments() -> None:
    def kernel(out_ptr: Any, n: Any) -> None:
        tl.store(out_ptr + tl.program_id(0), tl.num_programs(0) + n)

    bed = Bed(num_pes=4)
    out = bed.place(np.zeros(6, np.int32))
    bed.launch(kernel, out, n=6, grid=lambda arguments: (arguments["n"],))
    np.testing.assert_array_equal(bed.read(out), np.full(6, 12))


def test_a_grid_function_gets_the_hosts_own_numbers() -> None:
    bed = Bed()
    seen: list[int] = []

    def count(n: Any, block: int) -> None:
        del n, block

    def grid(meta: dict[str, Any]) -> tuple[int, ...]:
        seen.append(-(-meta["n"] // meta["block"]))  # rounds up in Python, not in C
        return (1,)

    bed.workspace.launch(count, 61, 4, grid=grid, pes=bed.pes)
    assert seen == [16]


def test_axis_0_of_the_grid_runs_fastest_over_the_pes() -> None:
    def kernel(out_ptr: Any) -> None:
        i, j = tl.program_id(0), tl.program_id(1)
        tl.store(out_ptr + j * tl.num_programs(0) + i, 10 * i + j)

    bed = Bed(num_pes=4)
    out = bed.place(np.zeros((2, 3), np.int32))
    bed.launch(kernel, out, grid=(3, 2))
    np.testing.assert_array_equal(bed.read(out), [[0, 10, 20], [1, 11, 21]])


@pytest.mark.parametrize(
    ("pes", "found"), [([], "no PEs"), ([PeCoord(0, 0, 0)] * 2, "twice among the PEs")]
)
def test_every_pe_is_named_once(pes: list[PeCoord], found: str) -> None:
    with pytest.raises(KernelError, match=found):
        Bed().workspace.launch(lambda: None, grid=(1,), pes=pes)


# -- the language as a parameter -----------------------------------------------------------------


def test_a_parameter_named_tl_is_the_language() -> None:
    def kernel(x_ptr, out_ptr, n, *, tl):  # type: ignore[no-untyped-def]
        places = tl.arange(0, 64)
        tl.store(out_ptr + places, tl.load(x_ptr + places, mask=places < n, other=5.0))

    bed = Bed()
    x, out = bed.place(ones()), bed.place(ones())
    bed.launch(kernel, x, out, 60)
    np.testing.assert_array_equal(bed.read(out), np.where(np.arange(N) < 60, 1, 5))


def test_tl_may_be_the_first_parameter_and_is_nobody_elses_to_give() -> None:
    def kernel(tl: Any, out_ptr: Any) -> None:
        tl.store(out_ptr, 3.0)

    bed = Bed()
    out = bed.place(ones(1))
    bed.launch(kernel, out)
    assert bed.read(out)[0] == 3
    with pytest.raises(KernelError, match="unexpected keyword argument 'tl'"):
        bed.launch(kernel, out, tl=tl)


# -- errors inside ---------------------------------------------------------------------------------


def test_an_error_of_the_authors_own_keeps_its_traceback_and_says_which_program() -> None:
    def kernel(x_ptr: Any) -> None:
        if tl.load(x_ptr) > 0:
            raise KeyError("no such key")

    bed = Bed()
    with pytest.raises(KeyError) as caught:
        bed.launch(kernel, bed.place(ones()), grid=(3,))
    assert caught.traceback[-1].lineno + 1 == line_of('raise KeyError("no such key")')
    (note,) = caught.value.__notes__
    at_ps = re.fullmatch(r"in program \(0,\) of kernel on sip0\.cube0\.pe0, at (\d+) ps", note)
    assert at_ps is not None
    assert int(at_ps[1]) > 0  # it waited for the load


def fails_by_shape(x_ptr: Any) -> None:
    x = tl.load(x_ptr + tl.arange(0, N))
    x + tl.zeros([32], tl.float32)  # 64 and 32


def fails_by_scalar(_: Any, n: Any) -> None:
    n * 2**20  # beyond int32


def fails_by_subscript(x_ptr: Any) -> None:
    tl.load(x_ptr + tl.arange(0, N))[3]  # one element


@pytest.mark.parametrize(
    ("kernel", "args", "line"),
    [
        (fails_by_shape, (), "x + tl.zeros([32], tl.float32)  # 64 and"),
        (fails_by_scalar, (2**12,), "n * 2**20  # beyond int32"),
        (fails_by_subscript, (), "tl.load(x_ptr + tl.arange(0, N))[3]  # one"),
    ],
)
def test_errors_of_the_language_say_line_program_and_time(
    kernel: Any, args: tuple[Any, ...], line: str
) -> None:
    bed = Bed()
    with pytest.raises(KernelError) as caught:
        bed.launch(kernel, bed.place(ones()), *args)
    place = f"{__file__}:{line_of(line)} in {kernel.__name__}, program (0,) of {kernel.__name__} on"
    assert str(caught.value).startswith(place)
    assert re.search(r", at \d+ ps", caught.value.where)
    assert caught.value.where.count("program (0,)") == 1


def test_a_page_fault_names_address_pe_kernel_and_line() -> None:
    def kernel(x_ptr: Any) -> None:
        tl.load(x_ptr + 10**6)  # far away

    bed = Bed()
    x = bed.place(ones())
    with pytest.raises(PageFaultError) as caught:
        bed.launch(kernel, x)
    error = caught.value
    assert error.kernel == "kernel"
    assert error.pe == "sip0.cube0.pe0"
    assert error.address == x.address + 4 * 10**6
    assert f"{__file__}:{line_of('tl.load(x_ptr + 10**6)  # far away')} in kernel" in str(error)


def test_what_fails_when_a_store_needs_it_names_the_line_and_the_program() -> None:
    def combine(*_: Any) -> Any:
        raise ZeroDivisionError("in the middle")

    def kernel(x_ptr: Any, out_ptr: Any) -> None:
        x = tl.load(x_ptr + tl.arange(0, N))
        tl.store(out_ptr, tl.reduce(x, 0, combine))  # evaluated later

    bed = Bed()
    with pytest.raises(KernelError) as caught:
        bed.launch(kernel, bed.place(ones()), bed.place(ones()))
    where = caught.value.where
    assert re.match(r"program \(0,\) of kernel on sip0\.cube0\.pe0, at [1-9]\d+ ps, ", where)
    line = line_of("tl.reduce(x, 0, combine))  # evaluated later")
    assert f"{__file__}:{line} in kernel" in where
    assert "ZeroDivisionError: in the middle" in caught.value.found


def test_after_a_run_that_failed_arrays_are_read_and_kernels_launched_at_a_later_time() -> None:
    def broken(x_ptr: Any, out_ptr: Any) -> None:
        tl.store(out_ptr + tl.arange(0, N), 2 * tl.load(x_ptr + tl.arange(0, N)))
        int(tl.sum(tl.load(out_ptr + tl.arange(0, N))))
        tl.store(out_ptr + tl.arange(0, N), tl.load(x_ptr + tl.arange(0, N)))
        raise RuntimeError("on purpose")

    bed = Bed()
    x, out = bed.place(ones()), bed.place(np.zeros_like(ones()))
    with pytest.raises(RuntimeError, match="on purpose"):
        bed.launch(broken, x, out)
    ended_ps = bed.workspace.device.engine.now_ps
    np.testing.assert_array_equal(bed.read(out), 2 * ones())  # the second store is not served
    result = bed.launch(copy, x, out)
    assert ended_ps == result.start_ps > 0
    np.testing.assert_array_equal(bed.read(out), ones())


@needs_both_engines
def test_what_the_core_refuses_reads_the_same_on_both_engines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = []
    for kind in EngineKind:
        bed = Bed(engine=kind)
        x = bed.place(ones())
        launcher: Any = bed.workspace._launcher
        size = bed.workspace.machine.addresses.slice_bytes
        monkeypatch.setattr(launcher, "locate", lambda _, size=size: (0, size, size))
        with pytest.raises(TilewrightError, match="an access inside memory") as caught:
            bed.launch(copy, x, x)
        error = caught.value
        assert "program (0,) of copy on sip0.cube0.pe0" in error.where
        texts.append((type(error), error.found, error.expected, error.fix))
    assert texts[0] == texts[1]


# -- around a run ------------------------------------------------------------------------------


def test_kernels_are_evaluated_with_one_blas_thread() -> None:
    before = num_blas_threads()
    seen: list[tuple[int, ...]] = []
    Bed().launch(lambda: seen.append(num_blas_threads()))
    assert seen == [(1,) * len(before)]
    assert num_blas_threads() == before
