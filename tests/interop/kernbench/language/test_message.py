"""Messages between PEs: on rings of a launch, and on rings that were installed."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.interop.kernbench.language.bed import PES, Array, launch, place
from tilewright.errors import KernelError
from tilewright.host import DPPolicy, RuntimeContext
from tilewright.interop.kernbench.language.handle import RecvFuture
from tilewright.machine.coords import PeCoord

ROWS = DPPolicy(num_cubes=1, pe="row_wise")
N = 64


def ring_of(pes: Sequence[PeCoord]) -> dict[PeCoord, dict[str, PeCoord]]:
    count = len(pes)
    return {
        pe: {"E": pes[(place + 1) % count], "W": pes[place - 1]} for place, pe in enumerate(pes)
    }


def exchanged(kernel: Callable[..., Any], x: Array, *, installed: bool = False) -> Array:
    """Run a kernel on the four PEs of a cube, a row each; return what it leaves."""
    with RuntimeContext("ahbm-small") as torch:
        tensor = place(torch, x, ROWS)
        if installed:
            torch.install_ipcq("ring", rank_to_pe=[(0, 0, pe) for pe in range(4)])
        launch(torch, kernel, tensor, on=PES, neighbours=None if installed else ring_of(PES))
        return np.asarray(tensor.numpy())


def rows() -> Array:
    return np.random.default_rng(5).integers(-9, 9, (4, N)).astype(np.float16)


def ring_sum(t_ptr: int, tl: Any) -> None:
    rank = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    address = t_ptr + rank * N * 2
    total = tile = tl.load(address, (N,), "f16")
    for _ in range(tl.num_programs(0) - 1):
        tl.send(dir="E", src=tile)
        tile = tl.recv(dir="W", shape=(N,), dtype="f16")
        total = total + tile
    tl.store(address, total)


@pytest.mark.parametrize("installed", [False, True])
def test_a_ring_all_reduce_leaves_the_sum_on_every_pe(installed: bool) -> None:
    x = rows()
    assert np.array_equal(exchanged(ring_sum, x, installed=installed), [x.sum(0)] * 4)


def test_a_future_gives_its_tensor_when_it_is_waited_for_under_any_shape() -> None:
    def kernel(t_ptr: int, tl: Any) -> None:
        address = t_ptr + tl.program_id(0) * N * 2
        future = tl.recv_async("W", (8, N // 8), "f16")
        assert isinstance(future, RecvFuture)
        tl.send("E", tl.load(address, (N,), "f16"))
        tile = tl.wait(future)
        assert tile.shape == (8, N // 8)
        tl.store(address, tile)

    x = rows()
    assert np.array_equal(exchanged(kernel, x), np.roll(x, 1, axis=0))


@pytest.mark.parametrize("destination", ["address", "ref", "tensor"])
def test_a_received_message_is_copied_to_its_destination(destination: str) -> None:
    def kernel(t_ptr: int, tl: Any) -> None:
        address = t_ptr + tl.program_id(0) * N * 2
        tile = tl.load(address, (N,), "f16")
        tl.send("E", src=tile)
        if destination == "address":
            copied = tl.recv("W", (N,), "f16", dst=address)
        elif destination == "ref":
            copied = tl.recv("W", dst=tl.ref(address, (N,), "f16"))
        else:
            copied = tl.recv("W", dst=tile)
            assert copied is tile
            tl.store(address, tile)
        assert copied.addr == address

    x = rows()
    assert np.array_equal(exchanged(kernel, x), np.roll(x, 1, axis=0))


def test_a_message_that_was_looked_at_is_received_again() -> None:
    def kernel(t_ptr: int, tl: Any) -> None:
        address = t_ptr + tl.program_id(0) * N * 2
        tl.send("E", src=tl.load(address, (N,), "f16"))
        seen = tl.recv_no_consume("W", (N,), "f16")
        tl.store(address, seen + tl.recv("W", (N,), "f16"))

    x = rows()
    assert np.array_equal(exchanged(kernel, x), 2 * np.roll(x, 1, axis=0))


def test_without_a_direction_messages_come_from_each_in_turn() -> None:
    def kernel(t_ptr: int, tl: Any) -> None:
        address = t_ptr + tl.program_id(0) * N * 2
        tile = tl.load(address, (N,), "f16")
        tl.send("E", src=tile)
        tl.send("W", src=tile)
        tl.store(address, 2 * tl.recv(shape=(N,)) + tl.recv(None, (N,)))

    x = rows()
    east, west = np.roll(x, -1, axis=0), np.roll(x, 1, axis=0)
    assert np.array_equal(exchanged(kernel, x), 2 * east + west)


def unknown_direction(t_ptr: int, tl: Any) -> None:
    tl.send("north", src=tl.load(t_ptr + tl.program_id(0) * N * 2, (N,)))


def other_dtype(t_ptr: int, tl: Any) -> None:
    tl.send("E", src=tl.load(t_ptr + tl.program_id(0) * N * 2, (N,), "f16"))
    tl.recv("W", (N // 2,), "f32")


def sent_number(_: int, tl: Any) -> None:
    tl.send("E", src=3)


def without_shape(_: int, tl: Any) -> None:
    tl.recv("W")


def misfit(t_ptr: int, tl: Any) -> None:
    tile = tl.load(t_ptr + tl.program_id(0) * N * 2, (N,), "f16")
    tl.send("E", src=tile)
    tl.recv("W", (N // 4, 4), dst=tile)


@pytest.mark.parametrize(("kernel", "line", "message"), [
    (unknown_direction, 1, "the direction 'north' of sip0.cube0.pe"),
    (other_dtype, 2, "fp16[64] is sent at"),
    (sent_number, 1, "3 of type int to send, expected a TensorHandle; pass src=handle"),
    (without_shape, 1, "tl.recv without a shape, expected a shape"),
    (misfit, 3, "<TensorHandle of a tensor f16[16, 4]> for dst=<TensorHandle of a tensor f16[64]>"),
])  # fmt: skip
def test_a_wrong_message_is_refused_with_its_line(
    kernel: Callable[..., Any], line: int, message: str
) -> None:
    where = f"{__file__}:{kernel.__code__.co_firstlineno + line} in {kernel.__name__}"
    with pytest.raises(KernelError, match=f"^{re.escape(where)}.*{re.escape(message)}"):
        exchanged(kernel, rows())


def test_programs_have_the_machines_own_numbers_whatever_a_launch_targets() -> None:
    """Four cubes of four PEs; the launch has two PEs of two cubes."""
    seen = {}

    def kernel(tl: Any) -> None:
        ids = tl.program_id(0), tl.program_id(axis=1)
        seen[ids] = tl.num_programs(0), tl.num_programs(axis=1)

    with RuntimeContext("ahbm-small") as torch:
        on = [PeCoord(0, cube, pe) for cube in (1, 3) for pe in (2, 3)]
        launch(torch, kernel, on=on)
    assert seen == {(pe, cube): (2, 4) for pe in (2, 3) for cube in (1, 3)}
