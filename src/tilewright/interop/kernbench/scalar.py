"""Integers of a launch that KernBench replaces by local sizes.

A kernel works on what its cube has. KernBench's launch replaces every integer argument that equals
a global size of a tensor argument by the size of a cube's part: size // units, for SIP and cube
splits.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tilewright.interop.kernbench.error import ValueProgramError
from tilewright.interop.kernbench.placement import DPPolicy
from tilewright.interop.kernbench.tensor import Tensor


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
                raise _two_sizes(where, known, local)
    return {size: replace(one, whole=whole.get(size)) for size, one in found.items()}


def _two_sizes(where: str, one: LocalSize, other: LocalSize) -> ValueProgramError:
    text = (
        f"the argument {one.size}, which tensor {one.tensor!r} makes {one.local} ({one.split}) and "
        f"tensor {other.tensor!r} {other.local} ({other.split})"
    )
    fix = "launch with _auto_dim_remap=False and pass local sizes"
    return ValueProgramError(where, text, "one local size for a number", fix)


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
        counts = _splits(dp, word, num_sips, num_cubes)
        units = 1
        for count in counts.values():
            units *= count
        text = " x ".join(f"{count} {name}" for name, count in counts.items())
        yield size, units, text


def _splits(dp: DPPolicy, word: str, num_sips: int, num_cubes: int) -> dict[str, int]:
    """Return how many SIPs and cubes split an axis; PE splits do not count."""
    found = {}
    if dp.sip == word:
        found["SIPs"] = dp.num_sips or num_sips
    if dp.cube == word:
        found["cubes"] = dp.num_cubes or num_cubes
    return found
