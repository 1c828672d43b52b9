"""The group of tensor-parallel ranks: ``kernbench.tp.parallel_state``.

There is one group, all ranks of the process group. It is that of the context whose group was
initialised last, unless ``torch=`` names another.
"""

import weakref
from typing import Any

from tilewright.interop.kernbench.distributed import DistributedContext, latest_distributed
from tilewright.interop.kernbench.error import RuntimeProgramError, ValueProgramError

__all__ = (
    "destroy_model_parallel",
    "get_tensor_model_parallel_rank",
    "get_tensor_model_parallel_world_size",
    "initialize_model_parallel",
    "model_parallel_is_initialized",
)

_state: list[weakref.ref[DistributedContext]] = []  # none until initialised


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
    _state[:] = [weakref.ref(found)]


def model_parallel_is_initialized() -> bool:
    """Tell whether there is a group of tensor-parallel ranks."""
    return any(reference() is not None for reference in _state)


def destroy_model_parallel() -> None:
    """Forget the group of tensor-parallel ranks; the process group stays."""
    _state.clear()


def get_tensor_model_parallel_rank() -> int:
    """Return the tensor-parallel rank of the calling worker."""
    return _found("get_tensor_model_parallel_rank").get_rank()


def get_tensor_model_parallel_world_size() -> int:
    """Return the number of tensor-parallel ranks."""
    return _found("get_tensor_model_parallel_world_size").get_world_size()


def parallel_context(where: str) -> Any:
    """Return the runtime context of the group."""
    return _found(where).context


def _found(where: str) -> DistributedContext:
    for reference in _state:
        made = reference()
        if made is not None:
            return made
    fix = "call initialize_model_parallel() behind init_process_group"
    raise RuntimeProgramError(where, "no tensor-parallel group", "one that is initialised", fix)
