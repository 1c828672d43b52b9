"""Each program reads and writes at offsets of its own from one base address."""

from typing import Any

from tilewright import language as tl


def offset_kernel(
    x_ptr: Any, out_ptr: Any, part: int, shift: int, offsets: tuple[int, ...], length: int
) -> None:
    """Program p adds p + 1 to ``length`` numbers at each offset in part p + shift of the tensor."""
    program = tl.program_id(0)
    base = (program + shift) % tl.num_programs(0) * part
    for offset in offsets:
        places = base + offset + tl.arange(0, length)
        tl.store(out_ptr + places, tl.load(x_ptr + places) + (program + 1))
