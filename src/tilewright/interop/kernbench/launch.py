"""A launch of a KernBench program as messages, one a SIP.

A kernel works on what its cube has. KernBench's launch replaces every integer argument that equals
a global size of a tensor argument by the size of a cube's part: size // units, for SIP and cube
splits.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from tilewright.errors import KernelError
from tilewright.interop.kernbench.message import KernelLaunchMsg, KernelRef, ScalarArg, TensorArg
from tilewright.interop.kernbench.tensor import TargetPe, Tensor
from tilewright.interop.kernbench.value import ValueProgramError

Number = int | float
Argument = Tensor | Number


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """The messages of a launch by their SIPs, and what was replaced."""

    messages: Mapping[int, KernelLaunchMsg]
    target_pe: TargetPe
    notes: tuple[str, ...]


def plan_launch(
    name: str,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    correlation_id: str,
    num_sips: int,
    num_cubes: int,
    replaces_sizes: bool,
) -> LaunchPlan:
    """Decide which PEs run a kernel with which arguments.

    The kernel runs on the PEs that hold a shard of any tensor, in each cube that does. The counts
    are those of the context's device, for policies that name none.
    """
    where = f"launch {name!r}" if isinstance(name, str) else "launch"
    if not isinstance(name, str) or not callable(function):
        found = f"an object of {type(name).__name__}, then one of {type(function).__name__}"
        fix = "write torch.launch('name', kernel, ...)"
        raise KernelError(where, found, "a name, then a function", fix)
    arguments = _positional(where, function, args, kwargs)
    tensors = [each for each in arguments if isinstance(each, Tensor)]
    target_pe = _union(tensor.in_machine.target_pe for tensor in tensors)
    notes: list[str] = []
    if replaces_sizes:
        arguments = _with_local_sizes(where, name, arguments, num_sips, num_cubes, notes)
    sips = sorted({shard.sip for tensor in tensors for shard in tensor.shards}) or [0]
    messages = {
        sip: KernelLaunchMsg(
            correlation_id=correlation_id,
            request_id=f"{name}_sip{sip}",
            kernel_ref=KernelRef(name=name, kind="builtin"),
            args=tuple(_message_argument(each, sip) for each in arguments),
            target_cubes=_cubes(tensors, sip),
            target_pe=target_pe,
            target_sip=sip,
        )
        for sip in sips
    }
    return LaunchPlan(messages, target_pe, tuple(notes))


def _positional(
    where: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[Argument]:
    """Return the arguments by position: numbers by keyword follow, in the order of keywords."""
    parameters = [name for name in inspect.signature(function).parameters if name != "tl"]
    found = [_checked(where, f"argument {index}", value) for index, value in enumerate(args)]
    for name, value in kwargs.items():
        if isinstance(value, Tensor):
            fix = "pass it by position"
            raise KernelError(where, f"the tensor {name}= by keyword", "numbers by keyword", fix)
        index = len(found)
        if name in parameters and parameters.index(name) != index:
            text = f"{name}= as argument {index}, since keywords count by their order alone"
            fix = "write the keywords in the order of the parameters"
            raise KernelError(where, text, f"argument {parameters.index(name)}", fix)
        found.append(_checked(where, f"{name}=", value))
    return found


def _checked(where: str, what: str, value: Any) -> Argument:
    match value:
        case Tensor() if value.placed is None:
            kind = "on the host" if value.is_host else "without memory"
            fix = "copy_ it into a tensor that has a placement"
            text = f"{what}, tensor {value.name!r} {kind}"
            raise KernelError(where, text, "tensors in the machine", fix)
        case Tensor() if not value.shards:
            text = f"{what}, tensor {value.name!r} of shape {value.shape}, which no PE has"
            raise KernelError(where, text, "tensors that have elements", "leave it out")
        case Tensor() | int() | float():
            return value
        case np.bool_() | np.integer() | np.floating():
            number: Number = value.item()
            return number
    expected = "tensors, ints and floats"
    fix = "leave it out, or give the kernel a default"
    text = f"{what} = {value!r} of type {type(value).__name__}"
    raise KernelError(where, text, expected, fix)


def _with_local_sizes(
    where: str,
    name: str,
    arguments: Sequence[Argument],
    num_sips: int,
    num_cubes: int,
    notes: list[str],
) -> list[Argument]:
    """Replace integers that are global sizes, and note each replacement."""
    tensors = [each for each in arguments if isinstance(each, Tensor)]
    integers = [each for each in arguments if type(each) is int]
    local = local_sizes(where, tensors, integers, num_sips, num_cubes)
    found: list[Argument] = []
    for index, value in enumerate(arguments):
        size = local.get(value) if type(value) is int else None
        if size is not None:
            notes.append(replacement_note(name, index, size))
        found.append(value if size is None else size.local)
    return found


def _union(targets: Iterable[TargetPe]) -> TargetPe:
    """Return the PEs of a launch: those of all tensors; without a tensor the first."""
    pes: set[int] = set()
    for target in targets:
        if isinstance(target, str):
            return target
        pes.update(target if isinstance(target, tuple) else (target,))
    ordered = tuple(sorted(pes or {0}))
    return ordered if len(ordered) > 1 else ordered[0]


def _cubes(tensors: Iterable[Tensor], sip: int) -> tuple[int, ...]:
    """Return the cubes of a SIP that a launch runs on."""
    cubes = {shard.cube for tensor in tensors for shard in _shards_for(tensor, sip)}
    return tuple(sorted(cubes)) or (0,)


def _shards_for(tensor: Tensor, sip: int) -> list[Any]:
    """Return the shards of a SIP; all of a tensor that has none there."""
    return [each for each in tensor.shards if each.sip == sip] or list(tensor.shards)


def _message_argument(value: Argument, sip: int) -> TensorArg | ScalarArg:
    if not isinstance(value, Tensor):
        return ScalarArg(dtype="f32" if isinstance(value, float) else "i32", value=value)
    shards = _shards_for(value, sip)
    first = min(shard.offset_bytes for shard in shards)
    return TensorArg(tuple(shards), value.va_base + first)


@dataclass(frozen=True, slots=True)
class LocalSize:
    """A global size of a tensor, what a cube has of it, and why."""

    tensor: str
    size: int
    local: int
    split: str  # in words: "2 SIPs x 4 cubes"
    whole: str | None = None  # a tensor that has the size too, and does not split it


def local_sizes(
    where: str, tensors: Iterable[Tensor], values: Iterable[int], num_sips: int, num_cubes: int
) -> Mapping[int, LocalSize]:
    """Return the local size of each of the values that is a global size of a split tensor.

    The counts are the machine's, for policies that have none. Refused are a value that is a size
    which does not divide, and one that two tensors would replace differently.
    """
    wanted = set(values)
    found: dict[int, LocalSize] = {}
    whole: dict[int, str] = {}
    for tensor in tensors:
        for size, units, words in _axes(tensor, num_sips, num_cubes):
            if size not in wanted:
                continue
            if units == 1:
                whole.setdefault(size, tensor.name)
                continue
            if size % units:
                text = f"the argument {size}, a size of tensor {tensor.name!r} split over {words}"
                fix = f"pad it to a multiple of {units}, or launch with _auto_dim_remap=False"
                raise ValueProgramError(where, text, f"a size that {units} divides", fix)
            local = LocalSize(tensor.name, size, size // units, words)
            known = found.setdefault(size, local)
            if known.local != local.local:
                text = (
                    f"the argument {size}, which tensor {known.tensor!r} makes {known.local}"
                    f" ({known.split}) and tensor {tensor.name!r} {local.local} ({words})"
                )
                fix = "launch with _auto_dim_remap=False and pass local sizes"
                raise ValueProgramError(where, text, "one local size for a number", fix)
    return {size: replace(one, whole=whole.get(size)) for size, one in found.items()}


def replacement_note(kernel: str, index: int, found: LocalSize) -> str:
    """Return the line that tells of one replacement.

    >>> replacement_note("qkv", 3, LocalSize("b", 256, 64, "4 cubes"))
    "launch 'qkv': argument 3 is 64 in the place of 256: tensor 'b' splits that size over 4 cubes"
    """
    also = "" if found.whole is None else f"; tensor {found.whole!r} has that size as a whole"
    return (
        f"launch {kernel!r}: argument {index} is {found.local} in the place of {found.size}: "
        f"tensor {found.tensor!r} splits that size over {found.split}{also}"
    )


def _axes(tensor: Tensor, num_sips: int, num_cubes: int) -> Iterator[tuple[int, int, str]]:
    """Yield each size of a tensor as a matrix, by how many units it is split, and over what."""
    placed = tensor.in_machine
    dp, shape = placed.dp, tensor.shape
    sizes = {"row_wise": shape[0] if len(shape) > 1 else 1, "column_wise": shape[-1]}
    for word, size in sizes.items():
        counts = {}  # PE splits do not count
        if dp.sip == word:
            counts["SIPs"] = dp.num_sips or num_sips
        if dp.cube == word:
            counts["cubes"] = dp.num_cubes or num_cubes
        text = " x ".join(f"{count} {name}" for name, count in counts.items())
        yield size, prod(counts.values()), text
