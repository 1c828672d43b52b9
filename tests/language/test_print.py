import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.language.bed import Bed
from tilewright import language as tl


def printed(capsys: pytest.CaptureFixture[str], kernel: Any) -> str:
    bed = Bed()
    bed.launch(kernel, bed.place(np.array([1, 10, 255, 3], np.int32)))
    return capsys.readouterr().out


def test_print_waits_for_the_values(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x_ptr: Any) -> None:
        n = tl.arange(0, 4)
        x = tl.load(x_ptr + n)
        print(x * 2, x > 2, n, n < 3, tl.sum(x))  # noqa: T201  # that it works is the point
        print(f"{x_ptr + n}"[:25], f"{tl.program_id(0)}")  # noqa: T201

    assert printed(capsys, kernel) == (
        "[  2  20 510   6] [False  True  True  True] [0 1 2 3] [ True  True  True False] 269\n"
        "<Pointers to int32[4] at  0\n"
    )


def test_a_representation_is_the_type_and_takes_no_time() -> None:
    shown: list[str] = []

    def kernel(x_ptr: Any, shows: tl.constexpr) -> None:
        n = tl.arange(0, 4)
        x = tl.load(x_ptr + n)
        y = x > 2
        if shows:
            shown.extend(map(repr, (x, y, n, n[:, None] < 3)))
        tl.store(x_ptr + n, x + y)

    def latency_ps(shows: bool) -> int:
        bed = Bed()
        return bed.launch(kernel, bed.place(np.array([1, 10, 255, 3], np.int32)), shows).latency_ps

    assert latency_ps(True) == latency_ps(False)
    assert " ".join(shown) == (
        "<Block int32[4]> <Block int1[4]> <Index int32[4], 0 + (1,)>"
        " <Mask [4, 1], true in (0, 0)..(3, 1)>"
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


def test_static_print_is_pythons_with_types(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(_: Any) -> None:
        tl.static_print("a", 1, tl.arange(0, 4) < 2, sep="-", end="!\n")

    assert printed(capsys, kernel) == "a-1-<Mask [4], true in (0,)..(2,)>!\n"


STOPPED = """
import numpy as np

from tests.language.bed import Bed
from tilewright import language as tl


def kernel(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 4))
    breakpoint()
    doubled = x * 2
    tl.store(x_ptr + tl.arange(0, 4), doubled)


bed = Bed()
x = bed.place(np.array([1, 10, 255, 3], np.int32))
bed.launch(kernel, x)
print(bed.read(x))
"""


def test_a_breakpoint_stops_in_the_line_of_the_kernel(tmp_path: Path) -> None:
    program = tmp_path / "stopped.py"
    program.write_text(STOPPED, encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, program],
        input="p x\nnext\nprint(doubled)\ndoubled = doubled + 1\ncontinue\n",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "-> doubled = x * 2\n(Pdb) <Block int32[4]>\n" in finished.stdout
    assert "(Pdb) [  2  20 510   6]\n" in finished.stdout
    assert "(Pdb) [  3  21 511   7]\n" in finished.stdout  # what the debugger changed was stored
