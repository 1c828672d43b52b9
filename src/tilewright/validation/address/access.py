"""Every way in which a kernel accesses memory, each as a kernel that adds 1 to 64 elements.

Where it is pointed at 64 elements that the PE has, it is right. Each *mistake* points it elsewhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.host import DPPolicy, LocalShard, RuntimeContext
from tilewright.machine.build import Machine
from tilewright.memory import MapMsg, RangeMapping, UnmapMsg, VirtualByte, VirtualRange
from tilewright.memory.address import PhysicalByte
from tilewright.runtime.request import LaunchReport
from tilewright.runtime.tensor.tensor import Tensor

NUM = 64
SIDE = 8  # of the same elements as a square

Way = Callable[[Any, Any], None]


def _whole_tile(x: Any, _: Any) -> None:
    tl.store(x, tl.load(x, shape=(NUM,)) + 1)


def _pointers(x: Any, _: Any) -> None:
    places = tl.arange(0, NUM)
    tl.store(x + places, tl.load(x + places) + 1)


def _strided(x: Any, _: Any) -> None:
    places = SIDE * tl.arange(0, SIDE)[:, None]
    for column in range(0, SIDE, 2):
        pair = x + places + (column + tl.arange(0, 2))[None, :]
        tl.store(pair, tl.load(pair) + 1)


def _gathered(x: Any, order: Any) -> None:
    places = tl.load(order + tl.arange(0, NUM))
    tl.store(x + places, tl.load(x + places) + 1)


def _block_pointer(x: Any, _: Any) -> None:
    window = tl.make_block_ptr(x, (NUM,), (1,), (0,), (NUM,), (0,))
    tl.store(window, tl.load(window) + 1)


def _descriptor(x: Any, _: Any) -> None:
    descriptor = tl.make_tensor_descriptor(x, [NUM], [1], [NUM])
    descriptor.store([0], descriptor.load([0]) + 1)


def _atomic(x: Any, _: Any) -> None:
    tl.atomic_add(x + tl.arange(0, NUM), 1)


def _composite(x: Any, _: Any) -> None:
    one = tl.full((SIDE, SIDE), 1, tl.float32)
    tl.wait(tl.composite("add", tl.ref(x, (SIDE, SIDE)), one, x, tile_shape=(4, 4, 1)))


def _integer(x: Any, _: Any) -> None:
    address = int(x)
    tl.store(address, tl.load(address, shape=(NUM,), dtype=tl.float32) + 1)


def _integers(x: Any, _: Any) -> None:
    addresses = (x + tl.arange(0, NUM)).to(tl.int64)
    pointers = addresses.to(tl.pointer_type(tl.float32))
    tl.store(pointers, tl.load(pointers) + 1)


def _halves(x: Any, _: Any) -> None:
    places = tl.arange(0, NUM)
    tl.store(x + places, (tl.load(x + places).to(tl.int8) + 1).to(tl.int4))


WAYS: Mapping[str, tuple[Way, str]] = {
    "whole tile": (_whole_tile, "f32"),
    "pointers": (_pointers, "f32"),
    "strided pointers": (_strided, "f32"),
    "loaded indices": (_gathered, "f32"),
    "block pointer": (_block_pointer, "f32"),
    "tensor descriptor": (_descriptor, "f32"),
    "atomic": (_atomic, "i32"),
    "composite": (_composite, "f32"),
    "integer address": (_integer, "f32"),
    "block of integer addresses": (_integers, "f32"),
    "4-bit elements": (_halves, "i4"),
}
"""By name: the kernel, and the dtype of its elements."""


@dataclass(frozen=True, slots=True)
class Pointing:
    """Which elements the programs of a launch are pointed at: of a tensor over ``num_pes`` PEs."""

    num_pes: int
    is_local: bool
    shift: int = 0  # elements, from there on


RIGHT = (Pointing(2, is_local=True), Pointing(1, is_local=False))
MISTAKES: Mapping[str, Pointing] = {
    "another PE's shard": Pointing(2, is_local=False),
    "beyond the last shard": Pointing(2, is_local=True, shift=1),
    "beyond a global tensor": Pointing(1, is_local=False, shift=1),
    "before the first element": Pointing(1, is_local=False, shift=-1),
}


def run_way(
    way: str, pointing: Pointing, machine: Machine, kind: EngineKind, *, by_pages: bool = False
) -> tuple[bool, LaunchReport]:
    """Run a way of access, and return whether exactly its elements have grown by 1.

    ``by_pages`` maps whole pages in the place of the bytes that exist.
    """
    function, dtype = WAYS[way]
    torch = RuntimeContext(machine, engine=kind)
    rows = DPPolicy(pe="row_wise", num_sips=1, num_cubes=1, num_pes=pointing.num_pes)
    copies = DPPolicy(num_sips=1, num_cubes=1, num_pes=pointing.num_pes)
    before = np.arange(pointing.num_pes * NUM).reshape(-1, NUM) % 7 - 4
    x = torch.empty(before.shape, dtype, dp=rows, name="x").copy_(before)
    order = torch.empty(NUM, "i64", dp=copies, name="order").copy_(np.arange(NUM)[::-1].copy())
    for tensor in (x, order):
        map_again(torch, tensor, machine.spec.pe.mmu.page_bytes if by_pages else 1)

    def kernel(x: Any, order: Any, shift: Any) -> None:
        function(x + shift, order)

    given = LocalShard(x) if pointing.is_local else x
    report = torch.launch(kernel, given, order, pointing.shift).report
    return bool(np.array_equal(x.numpy().astype(np.int64), before + 1)), report


def map_again(torch: RuntimeContext, tensor: Tensor, unit_bytes: int) -> None:
    """Unmap a tensor and map it anew, in ranges that begin and end with whole units."""
    plan = torch.driver.tensors[tensor.address].mapping
    for undo in plan.unmap_messages():
        torch.wait(torch.submit(UnmapMsg(undo.target, undo.ranges)))
    for step in plan.map_messages():
        wide = tuple(_widened(mapping, unit_bytes) for mapping in step.mappings)
        torch.wait(torch.submit(MapMsg(step.target, wide)))


def _widened(mapping: RangeMapping, unit_bytes: int) -> RangeMapping:
    virtual = mapping.virtual
    before = virtual.first % unit_bytes
    num_bytes = -(-(before + virtual.num_bytes) // unit_bytes) * unit_bytes
    first = VirtualByte(virtual.first - before)
    return RangeMapping(VirtualRange(first, num_bytes), PhysicalByte(mapping.physical - before))
