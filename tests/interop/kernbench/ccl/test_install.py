"""Rings that KernBench programs install by hand, and launches that use them by direction."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.interop.kernbench.contexts import context, two_sips
from tests.interop.kernbench.worlds import RING, filled
from tilewright.errors import CollectiveError
from tilewright.interop.kernbench.ccl.install import configure_sfr_intercube_multisip, install_ipcq
from tilewright.interop.kernbench.placement import DPPolicy

FOUR = [(0, 0, pe) for pe in range(4)]
ROWS = DPPolicy(pe="row_wise", num_cubes=1)


def shift(x_ptr: int, n: int, to: int, tl: Any) -> None:
    """Send the row of a PE to the east, or to the west, and keep what comes from behind."""
    ahead, behind = ("E", "W") if to > 0 else ("W", "E")
    address = x_ptr + tl.program_id(0) * n * 2
    tl.send(ahead, tl.load(address, (n,), "f16"))
    tl.recv(behind, (n,), "f16", dst=address)


def rows() -> Any:
    return np.arange(32, dtype=np.float16).reshape(4, 8)


def test_a_program_installs_on_an_engine_from_a_merged_entry() -> None:
    torch = context()
    plan = install_ipcq(torch.engine, torch.spec, {"module": RING}, rank_to_pe=FOUR)
    assert plan["world_size"] == 4
    assert plan["rank_to_pe"] == dict(enumerate(FOUR))
    assert plan["neighbors"][0] == {"E": 1, "W": 3, "rank1": 1, "rank3": 3}
    tensor = filled(torch, rows(), ROWS)
    torch.launch("shift", shift, tensor, 8, 1)
    np.testing.assert_array_equal(tensor.numpy(), np.roll(rows(), 1, axis=0))


def test_a_module_of_the_caller_says_the_topology() -> None:
    torch = context()
    module = SimpleNamespace(TOPOLOGY="tree_binary", kernel=print, kernel_args=print)
    plan = install_ipcq(
        torch.engine, None, {"module": "not.there", "world_size": 3}, algo_module=module
    )
    assert plan["neighbors"][0] == {"child_left": 1, "child_right": 2, "rank1": 1, "rank2": 2}
    assert plan["neighbors"][2] == {"parent": 0, "rank0": 0}


@pytest.mark.parametrize("kind", ["tcm", "sram", "hbm"])
def test_a_second_world_leaves_the_first_and_is_the_one_that_launches_use(kind: str) -> None:
    torch = context()
    entry = {"module": RING, "buffer_kind": kind}
    tensor = filled(torch, rows(), ROWS)
    for places, moved in ((FOUR, 1), (FOUR[::-1], -1), (FOUR, 1)):
        before = tensor.numpy()
        install_ipcq(torch.engine, None, entry, rank_to_pe=places)
        torch.launch("shift", shift, tensor, 8, 1)
        np.testing.assert_array_equal(tensor.numpy(), np.roll(before, moved, axis=0))


def test_rings_are_as_large_as_an_entry_says() -> None:
    torch = context()
    for keys, size in (({}, (4, 4096)), ({"n_elem": 24}, (4, 48)),
                       ({"n_slots": 2, "slot_size": 100}, (2, 100))):  # fmt: skip
        entry = {"module": RING, "world_size": 4, **keys}
        ring = install_ipcq(torch.engine, None, entry).plan.neighbours.ring
        assert (ring.slots, ring.slot_bytes) == size


def test_directions_between_cubes_and_sips_by_configured_registers() -> None:
    torch = context(two_sips())
    plan = configure_sfr_intercube_multisip(torch.engine, torch.spec, {"topology": "ring_1d"})
    places = [(sip, cube, 0) for sip, cube in product(range(2), repeat=2)]
    assert plan["rank_to_pe"] == dict(enumerate(places))
    assert plan["neighbors"][0] == {
        "E": 1, "rank1": 1, "global_E": 2, "global_W": 2, "rank2": 2
    }  # fmt: skip

    def swap(x_ptr: int, n: int, tl: Any) -> None:
        tl.send("global_E", tl.load(x_ptr, (n,), "f16"))
        tl.store(x_ptr, tl.recv("global_W", (n,), "f16"))

    values = np.arange(16, dtype=np.float16).reshape(2, 8)
    tensor = filled(torch, values, DPPolicy(sip="row_wise", num_cubes=1, num_pes=1))
    torch.launch("swap", swap, tensor, 8)
    np.testing.assert_array_equal(tensor.numpy(), values[::-1])


@pytest.mark.parametrize(
    ("entry", "places", "message"),
    [
        ({"world_size": 5}, FOUR, r"PEs of 4 ranks for world_size=5"),
        ({}, [(0, 0, 9)], r"rank_to_pe with PeCoord\(sip=0, cube=0, pe=9\), expected PEs of the"),
        ({"world_size": 17}, None, r"found world_size=17, expected 1 to 16, the PEs of the device"),
        ({"topology": "star"}, FOUR, r"the topology 'star', expected one of ring_1d, mesh_2d"),
        ({"topology": "mesh_2d", "world_size": 6}, None, r"6 ranks on a torus_2d whose rows and"),
        ({"module": RING.replace("ring", "hierarchical"), "world_size": 6}, None,
         r"found 6 ranks, expected whole cubes of 4 PEs"),
    ],
)  # fmt: skip
def test_a_world_that_cannot_be_is_refused(
    entry: dict[str, Any], places: Any, message: str
) -> None:
    torch = context()
    with pytest.raises(CollectiveError, match=message):
        install_ipcq(torch.engine, None, {"module": RING, **entry}, rank_to_pe=places)
