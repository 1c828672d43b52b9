"""Mistakes of programs end in one message that names them; numbers of NumPy are none."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.interop.kernbench.contexts import context
from tilewright.errors import TilewrightError
from tilewright.interop.kernbench.context import RuntimeContext
from tilewright.interop.kernbench.placement import DPPolicy

ONE = DPPolicy(num_cubes=1, num_pes=1)


def copy_kernel(x_ptr: int, n: int, tl: Any) -> None:
    tl.store(x_ptr, tl.load(x_ptr, (n,), "f16"))


def without_language(x_ptr: int, n: int) -> None:
    del x_ptr, n


def parent_kernel(x_ptr: int, n: int, tl: Any) -> None:
    tl.send("parent", tl.load(x_ptr, (n,), "f16"))


def launched(torch: RuntimeContext, *start: Any) -> None:
    torch.launch(*start, torch.zeros((8,), dp=ONE), 8)


MISTAKES: dict[str, tuple[Callable[[RuntimeContext], object], str]] = {
    "no tl": (
        lambda torch: launched(torch, "q", without_language),
        r"found 2 arguments for q\(x_ptr: int\).* no parameter tl.*the last, n,",
    ),
    "no name": (
        lambda torch: torch.launch(copy_kernel, 8),  # type: ignore[arg-type]
        r"^launch: found an object of function, then one of int, expected a name, then a function",
    ),
    "no function": (
        lambda torch: launched(torch, "q", "q"),
        r"launch 'q': found an object of str, then one of str",
    ),
    "a text as a count": (
        lambda _: DPPolicy(num_pes="2"),
        r"DPPolicy num_pes: found '2', expected a number of PEs",
    ),
    "a text as a world": (
        lambda torch: torch.install_ipcq(world_size_override="a"),  # type: ignore[arg-type]
        r"found world_size_override='a', expected a number of ranks",
    ),
    "a world of none": (
        lambda torch: torch.install_ipcq("ring_allreduce_tcm", world_size_override=0),
        r"found world_size=0, expected 1 to 16",
    ),
    "ranks that are no places": (
        lambda torch: torch.install_ipcq("ring_allreduce_tcm", rank_to_pe=[3, 4]),  # type: ignore[list-item]
        r"found rank_to_pe with 3, expected \(sip, cube, pe\)",
    ),
    "a place that is no number": (
        lambda torch: torch.install_ipcq("ring_allreduce_tcm", rank_to_pe=[(0, 0, 0.5)]),  # type: ignore[list-item]
        r"found rank_to_pe with \(0, 0, 0.5\), expected three whole numbers",
    ),
    "rings of cubes for some PEs": (
        lambda torch: torch.install_ipcq(world_size_override=2),
        r"found rings between cubes for 2 ranks that are PEs, expected all 16 PEs.*ring_1d",
    ),
    "no such file": (
        lambda torch: torch.install_ipcq(ccl_yaml="nofile.yaml"),
        r"nofile.yaml: found a file that cannot be read.*expected a ccl.yaml",
    ),
    "no engine": (
        lambda _: RuntimeContext(3),  # type: ignore[arg-type]
        r"RuntimeContext: found the engine 3, expected a GraphEngine",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(mistake: str) -> None:
    make, message = MISTAKES[mistake]
    with context() as torch, pytest.raises(TilewrightError, match=message):
        make(torch)


def test_numbers_of_numpy_are_numbers() -> None:
    with context() as torch:
        policy = DPPolicy(num_cubes=np.int64(1), num_pes=np.int32(1))  # type: ignore[arg-type]
        assert policy == ONE
        for shape in ((np.int64(8), np.int32(2)), np.array([8, 2])):
            assert torch.zeros(shape, dp=policy).shape == (8, 2)  # type: ignore[arg-type]
        assert torch.zeros(np.int64(8), dp=policy).shape == (8,)  # type: ignore[arg-type]
        places = [(np.int64(0), np.int64(0), np.int64(pe)) for pe in (0, 1)]
        plan = torch.install_ipcq("ring_allreduce_tcm", rank_to_pe=places)  # type: ignore[arg-type]
        assert plan["rank_to_pe"] == {0: (0, 0, 0), 1: (0, 0, 1)}


def east_kernel(x_ptr: int, n: int, tl: Any) -> None:
    """Pass the PE's tile to the same PE of the next cube and back."""
    cube, pe = tl.program_id(1), tl.program_id(0)
    address = x_ptr + (cube * tl.num_programs(0) + pe) * n * 2
    there = "E" if cube % 2 == 0 else "W"
    tl.send(there, tl.load(address, (n,), "f16"))
    tl.store(address, tl.recv(there, (n,), "f16"))


def test_without_a_file_rings_join_equal_pes_of_neighbouring_cubes() -> None:
    values = np.arange(16 * 8, dtype=np.float16).reshape(16, 8)
    with context() as torch:
        plan = torch.install_ipcq()
        assert plan["world_size"] == 16
        assert plan["neighbors"][1] == {"E": 5, "S": 9, "rank5": 5, "rank9": 9}
        tiles = torch.zeros(values.shape, dp=DPPolicy(cube="row_wise", pe="row_wise"))
        tiles.copy_(torch.from_numpy(values))
        torch.launch("east", east_kernel, tiles, 8)
        swapped = values.reshape(2, 2, 4, 8)[:, ::-1].reshape(16, 8)
        assert (tiles.numpy() == swapped).all()
