"""KernBench's tensor-parallel layers, and the group of their ranks (``kernbench.tp``).

As in KernBench a rank's tensors lie on PE 0 of cube 0 of its SIP, and sizes must divide. There is
one group, all ranks of the process group. It is that of the context whose group was initialised
last, unless ``torch=`` names another.
"""

from typing import Any
from weakref import WeakValueDictionary

from tilewright.interop.kernbench.ccl.config import DTYPE, with_defaults
from tilewright.interop.kernbench.distributed import BACKEND, DistributedContext, latest_distributed
from tilewright.interop.kernbench.placement import DPPolicy
from tilewright.interop.kernbench.tensor import Tensor
from tilewright.interop.kernbench.value import (
    RuntimeProgramError,
    ValueProgramError,
    dtype_itemsize,
)

# ruff: noqa: ARG001, ARG002 - signatures are those of KernBench

ONE_PE = DPPolicy(num_cubes=1, num_pes=1)
NUM_AXES = 2


class _ParallelLinear:
    """A weight of (in_features, out_features) of which each rank has an equal part."""

    splits_input = False

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = False,
        dtype: str = "f16",
        torch: Any = None,
    ) -> None:
        self._where = type(self).__name__
        if torch is None:
            fix = "pass torch=torch, the program's runtime context"
            raise ValueProgramError(self._where, "torch=None", "a runtime context", fix)
        if bias:
            fix = "leave it out and add the bias in a kernel of your own"
            raise ValueProgramError(self._where, "bias=True", "bias=False, as in KernBench", fix)
        self.in_features, self.out_features, self.dtype = in_features, out_features, dtype
        self.bias = None
        self._torch = torch
        shape = [in_features, out_features]
        axis = 0 if self.splits_input else 1
        name = ("in_features", "out_features")[axis]
        shape[axis] = _part(self._where, name, shape[axis])
        if get_tensor_model_parallel_world_size() > 1 and torch.ahbm.current_device() is None:
            found, fix = "a worker without a device", "call torch.ahbm.set_device(rank) first"
            raise RuntimeProgramError(self._where, found, "the rank's SIP", fix)
        self.weight: Tensor = torch.zeros(tuple(shape), dtype, dp=ONE_PE)

    def __call__(self, x: Tensor) -> Tensor:
        return self.forward(x)

    def forward(self, x: Tensor) -> Tensor:
        """Return x (rows, features of the rank) times the rank's part of the weight."""
        k, n = self.weight.shape
        if len(x.shape) != NUM_AXES or x.shape[1] != k or x.dtype != self.dtype:
            found = f"an input of shape {x.shape} and dtype {x.dtype}"
            expected = f"(rows, {k}) of {self.dtype}, as the rank's weight is {self.weight.shape}"
            raise ValueProgramError(self._where, found, expected, "correct the input")
        out: Tensor = self._torch.empty((x.shape[0], n), self.dtype, dp=ONE_PE)
        kernel = with_defaults(linear_kernel, {DTYPE: self.dtype})
        name = f"linear_rank{get_tensor_model_parallel_rank()}"
        sizes = x.shape[0], k, n
        self._torch.launch(name, kernel, x, self.weight, out, *sizes, _auto_dim_remap=False)
        return out


class ColumnParallelLinear(_ParallelLinear):
    """A linear layer whose outputs are divided: ``weight`` is (in_features, out_features / world).

    The input is that of all ranks, the output the rank's columns.
    """


class RowParallelLinear(_ParallelLinear):
    """A linear layer whose inputs are divided: ``weight`` is (in_features / world, out_features).

    The input is the rank's columns; the outputs of all ranks are summed, so all have the same.
    """

    splits_input = True

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum over ranks of x times the rank's part of the weight."""
        return reduce_from_tensor_model_parallel_region(super().forward(x), torch=self._torch)


class VocabParallelEmbedding:
    """Refuses to be made: KernBench's is a stub without a meaning."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        found, fix = "a use of it", "look rows up in a kernel of your own: tl.load at row * columns"
        raise ValueProgramError("VocabParallelEmbedding", found, "a layer that KernBench has", fix)


def copy_to_tensor_model_parallel_region(x: Tensor, *, torch: Any = None) -> Tensor:
    """Return the tensor itself: all ranks have it."""
    return x


def reduce_from_tensor_model_parallel_region(x: Tensor, *, torch: Any = None) -> Tensor:
    """Sum a tensor over ranks, in place, and return it."""
    _context("reduce_from_tensor_model_parallel_region", torch).distributed.all_reduce(x)
    return x


def scatter_to_tensor_model_parallel_region(x: Tensor, *, torch: Any = None) -> Tensor:
    """Return the rank's columns of a matrix that all ranks have."""
    where = "scatter_to_tensor_model_parallel_region"
    context = _context(where, torch)
    rows, columns = _matrix(where, x)
    part = _part(where, "columns", columns)
    first = get_tensor_model_parallel_rank() * part
    out: Tensor = context.empty((rows, part), x.dtype, dp=ONE_PE)
    _copy_columns(context, x, out, part, source_first=first)
    return out


def gather_from_tensor_model_parallel_region(x: Tensor, *, torch: Any = None) -> Tensor:
    """Return the columns of all ranks side by side, on every rank."""
    where = "gather_from_tensor_model_parallel_region"
    context = _context(where, torch)
    rows, columns = _matrix(where, x)
    size = get_tensor_model_parallel_world_size()
    parts = [context.empty(x.shape, x.dtype, dp=ONE_PE) for _ in range(size)]
    context.distributed.all_gather(parts, x)
    out: Tensor = context.empty((rows, columns * size), x.dtype, dp=ONE_PE)
    for rank, part in enumerate(parts):
        _copy_columns(context, part, out, columns, target_first=rank * columns)
    return out


def _copy_columns(
    context: Any,
    source: Tensor,
    target: Tensor,
    columns: int,
    *,
    source_first: int = 0,
    target_first: int = 0,
) -> None:
    kernel = with_defaults(copy_columns_kernel, {DTYPE: source.dtype})
    name = f"copy_columns_rank{get_tensor_model_parallel_rank()}"
    sizes = (source.shape[0], columns, source.shape[1], target.shape[1])
    context.launch(
        name, kernel, source, target, *sizes, source_first, target_first, _auto_dim_remap=False
    )


def _part(where: str, name: str, size: int) -> int:
    """Return the size of a rank's part; a size that does not divide is refused."""
    world_size = get_tensor_model_parallel_world_size()
    if size % world_size:
        expected = f"a multiple of {world_size}, the number of ranks"
        raise ValueProgramError(where, f"{name}={size}", expected, "pad it")
    return size // world_size


def _matrix(where: str, x: Tensor) -> tuple[int, int]:
    if len(x.shape) != NUM_AXES:
        raise ValueProgramError(where, f"a tensor of shape {x.shape}", "a matrix", "reshape it")
    return x.shape[0], x.shape[1]


def _context(where: str, torch: Any) -> Any:
    """Return the context that a call names, else that of the group."""
    return _found(where).context if torch is None else torch


def linear_kernel(
    x_ptr: int,
    w_ptr: int,
    out_ptr: int,
    m: int,
    k: int,
    n: int,
    tl: Any,
    DTYPE: str = "f16",  # noqa: N803
) -> None:
    """Write x (m, k) times w (k, n); the weight is streamed tile by tile."""
    if tl.program_id(0) == 0 and tl.program_id(1) == 0:
        x = tl.load(x_ptr, (m, k), DTYPE)
        w = tl.ref(w_ptr, (k, n), DTYPE)
        tl.wait(tl.composite(op="gemm", a=x, b=w, out_ptr=out_ptr))


def copy_columns_kernel(
    source_ptr: int,
    target_ptr: int,
    rows: int,
    columns: int,
    source_columns: int,
    target_columns: int,
    source_first: int,
    target_first: int,
    tl: Any,
    DTYPE: str = "f16",  # noqa: N803
) -> None:
    """Copy ``columns`` neighbouring columns of a matrix into another, row by row."""
    if tl.program_id(0) == 0 and tl.program_id(1) == 0:
        size = dtype_itemsize(DTYPE)
        for row in range(rows):
            source = source_ptr + (row * source_columns + source_first) * size
            target = target_ptr + (row * target_columns + target_first) * size
            tl.store(target, tl.load(source, (columns,), DTYPE))


_state = WeakValueDictionary[str, DistributedContext]()  # by BACKEND; none until initialised


def initialize_model_parallel(
    tensor_model_parallel_size: int | None = None, *, torch: Any = None
) -> None:
    """Let all ranks of the process group be tensor-parallel.

    A size that is not theirs is refused: there are no other dimensions of parallelism. A worker may
    call it again with the same size.
    """
    where = "initialize_model_parallel"
    found = latest_distributed(where) if torch is None else torch.distributed
    world_size = found.get_world_size()
    if tensor_model_parallel_size not in (None, world_size):
        text = f"tensor_model_parallel_size={tensor_model_parallel_size}"
        expected = f"{world_size}, all ranks of the process group"
        raise ValueProgramError(where, text, expected, "leave it out, or start as many ranks")
    _state[BACKEND] = found


def model_parallel_is_initialized() -> bool:
    """Tell whether there is a group of tensor-parallel ranks."""
    return BACKEND in _state


def destroy_model_parallel() -> None:
    """Forget the group of tensor-parallel ranks; the process group stays."""
    _state.clear()


def get_tensor_model_parallel_rank() -> int:
    """Return the tensor-parallel rank of the calling worker."""
    return _found("get_tensor_model_parallel_rank").get_rank()


def get_tensor_model_parallel_world_size() -> int:
    """Return the number of tensor-parallel ranks."""
    return _found("get_tensor_model_parallel_world_size").get_world_size()


def _found(where: str) -> DistributedContext:
    made = _state.get(BACKEND)
    if made is None:
        fix = "call initialize_model_parallel() behind init_process_group"
        raise RuntimeProgramError(where, "no tensor-parallel group", "one that is initialised", fix)
    return made
