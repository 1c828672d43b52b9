from typing import Any

import numpy as np
import pytest

from tests.language.bed import Bed
from tilewright import language as tl


def printed(capsys: pytest.CaptureFixture[str], kernel: Any) -> str:
    bed = Bed()
    bed.launch(kernel, bed.place(np.array([1, 10, 255, 3], np.int32)))
    return capsys.readouterr().out


def test_python_prints_the_type_of_what_is_not_computed_yet(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def kernel(x_ptr: Any) -> None:
        n = tl.arange(0, 4)
        x = tl.load(x_ptr + n)
        print(x, x > 2, n, n[:, None] < 3)  # noqa: T201  # that it works is the point
        print(f"{x_ptr + n}"[:25], f"{tl.program_id(0)}")  # noqa: T201

    assert printed(capsys, kernel) == (
        "<Block int32[4]> <Block int1[4]> <Index int32[4], 0 + (1,)>"
        " <Mask [4, 1], true in (0, 0)..(3, 1)>\n"
        "<Pointers to int32[4] at  0\n"
    )


def test_device_print_waits_for_the_values(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x_ptr: Any) -> None:
        x = tl.load(x_ptr + tl.arange(0, 4))
        tl.device_print("x = ", x * 2, tl.sum(x), 1.5)

    assert printed(capsys, kernel) == "pid (0,) x = [  2  20 510   6] 269 1.5\n"


def test_device_print_shows_hexadecimal_digits(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x_ptr: Any) -> None:
        tl.device_print("x = ", tl.load(x_ptr + tl.arange(0, 4)), 17, 0.5, hex=True)

    assert printed(capsys, kernel) == "pid (0,) x = [0x1 0xa 0xff 0x3] 0x11 0.5\n"


def test_static_print_is_pythons(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(_: Any) -> None:
        tl.static_print("a", 1, sep="-", end="!\n")

    assert printed(capsys, kernel) == "a-1!\n"
