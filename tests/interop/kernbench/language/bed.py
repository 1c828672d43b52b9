"""Kernels of KernBench on a small machine: arrays in, arrays out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tilewright.host import DPPolicy, RuntimeContext
from tilewright.interop.kernbench.kernel import kernel_of
from tilewright.language.dtype import dtype_of
from tilewright.machine.coords import PeCoord
from tilewright.memory.mapping import Sight
from tilewright.runtime.launch.bind import PerPe
from tilewright.runtime.launch.launch import Pending
from tilewright.runtime.tensor.tensor import Tensor

__all__ = ("FIRST", "ONE_PE", "PES", "Array", "launch", "place", "run")

Array: TypeAlias = np.ndarray[Any, Any]

ONE_PE = DPPolicy(num_sips=1, num_cubes=1, num_pes=1)
FIRST = PeCoord(0, 0, 0)
PES = tuple(PeCoord(0, 0, pe) for pe in range(4))  # a cube of ahbm-small


def place(torch: RuntimeContext, array: Array, dp: DPPolicy = ONE_PE, name: str = "t") -> Tensor:
    """Place an array as this dialect does: one range of addresses for all PEs of a SIP."""
    dtype = dtype_of(array.dtype)
    tensor = torch.deployments.empty(array.shape, dtype, dp=dp, name=name, sight=Sight.SIP)
    tensor.copy_(torch.from_numpy(array))
    return tensor


def launch(
    torch: RuntimeContext,
    kernel: Callable[..., Any],
    *args: Any,
    on: Sequence[PeCoord] = (FIRST,),
    neighbours: Mapping[Any, Mapping[str, Any]] | None = None,
    **kwargs: Any,
) -> Pending:
    """Launch with the address of a tensor in its place."""
    seen = [_address(arg, on) if isinstance(arg, Tensor) else arg for arg in args]
    return torch.launch(kernel_of(kernel), *seen, on=list(on), neighbours=neighbours, **kwargs)


def _address(tensor: Tensor, on: Sequence[PeCoord]) -> PerPe:
    offset = tensor.placement.sip_offset
    return PerPe({pe: tensor.address + offset(pe.sip) for pe in on})


def run(kernel: Callable[..., Any], *arrays: Array, args: Sequence[Any] = ()) -> Array:
    """Run a kernel on one PE; return what it leaves in its last array."""
    with RuntimeContext("ahbm-small") as torch:
        tensors = [place(torch, array, name=f"t{number}") for number, array in enumerate(arrays)]
        launch(torch, kernel, *tensors, *args)
        return np.asarray(tensors[-1].numpy())
