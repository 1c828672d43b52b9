"""What a program sets up before its measured time: PEs, drawn values, tensors on them."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from tilewright.errors import BenchError, OutOfMemoryError
from tilewright.host import DPPolicy, RuntimeContext, Split, Tensor
from tilewright.language.dtype import dtype_of
from tilewright.runtime.placement.policy import Layout

Array = np.ndarray[Any, Any]

Sips = Annotated[int, "SIPs that take part; 0: all of the device"]
Cubes = Annotated[int, "cubes of a SIP that take part; 0: all"]
Pes = Annotated[int, "PEs of a cube that take part; 0: all"]
DtypeName = Literal["f16", "bf16", "f32"]
Dtype = Annotated[DtypeName, "of inputs and results; products and sums are f32"]


@dataclass(frozen=True, slots=True)
class Team:
    """The first so many SIPs of the device, of each so many cubes, of each so many PEs."""

    num_sips: int
    num_cubes: int
    num_pes_per_cube: int

    @property
    def num_pes(self) -> int:
        return self.num_sips * self.num_cubes * self.num_pes_per_cube

    def at_most(self, *, pes: int) -> "Team":
        """Return the same team with no more than so many PEs a cube."""
        return replace(self, num_pes_per_cube=min(self.num_pes_per_cube, pes))

    def policy(
        self,
        sip: Layout | str = "replicate",
        cube: Layout | str = "replicate",
        pe: Layout | str = "replicate",
    ) -> DPPolicy:
        """Return a division among the team; a level that is not named has copies."""
        return DPPolicy(sip, cube, pe, self.num_sips, self.num_cubes, self.num_pes_per_cube)

    def split(self, axis: int) -> DPPolicy:
        """Return the policy by which all levels split one axis: each PE has its own part."""
        return self.policy(Split(axis), Split(axis), Split(axis))


def team_of(torch: RuntimeContext, *, sips: int = 1, cubes: int = 1, pes: int = 0) -> Team:
    """Return the team that the parameters of a program ask for; 0 stands for all.

    Raises BenchError for parts that the machine has not.
    """
    grid = torch.machine.grid
    there = {
        "sips": len(torch.device.sips),
        "cubes": grid.num_cubes_per_sip,
        "pes": grid.num_pes_per_cube,
    }
    asked = {"sips": sips, "cubes": cubes, "pes": pes}
    for name, count in asked.items():
        if not 0 <= count <= there[name]:
            expected = f"at most the {there[name]} that the machine has, or 0 for all"
            raise BenchError("team", f"{name}={count}", expected, "take fewer, or a larger machine")
    return Team(*(asked[name] or there[name] for name in asked))


def check_sizes(where: str, **sizes: int) -> None:
    """Raise BenchError for a size below 1.

    >>> check_sizes("softmax", rows=8, columns=0)
    Traceback (most recent call last):
    tilewright.errors.BenchError: softmax: found columns=0, expected at least 1; set it higher
    """
    for name, size in sizes.items():
        if size < 1:
            raise BenchError(where, f"{name}={size}", "at least 1", "set it higher")


def check_shares(where: str, team: Team, **sizes: int) -> None:
    """Raise BenchError for a size that does not give every PE of the team at least one."""
    for name, size in sizes.items():
        if size < team.num_pes:
            found = f"{name}={size} for {team.num_pes} PEs"
            expected, fix = "at least one for each PE", "set it higher, or pes lower"
            raise BenchError(where, found, expected, fix)


class Draw:
    """Arrays drawn one after the other. In timing-only mode floats are zeros that nobody reads.

    Integers come from ``integers``, a generator of their own: they are the same in both modes.
    An array that all HBM of the machine has no room for is an OutOfMemoryError.
    """

    def __init__(self, torch: RuntimeContext) -> None:
        self._floats, self.integers = np.random.default_rng(torch.seed).spawn(2)
        self._carries_data = torch.carries_data
        self._hbm_bytes = torch.machine.grid.num_cubes * torch.machine.spec.cube.hbm.capacity_bytes

    def normal(self, shape: tuple[int, ...], dtype: str) -> Array:
        """Return values of the standard normal distribution, rounded to the dtype."""
        storage = dtype_of(dtype).storage
        self.check_room(shape, storage)
        if not self._carries_data:
            return np.broadcast_to(np.zeros((), storage), shape)
        return self._floats.standard_normal(shape, np.float32).astype(storage)

    def check_room(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Raise OutOfMemoryError if all HBM of the machine is smaller than an array."""
        num_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        if num_bytes > self._hbm_bytes:
            found = f"an input of shape {shape}: {num_bytes} bytes"
            expected = f"at most the {self._hbm_bytes} bytes of all HBM of the machine"
            fix = "make the program's sizes smaller, or choose a larger machine"
            raise OutOfMemoryError("program", found, expected, fix)


def small_integers(torch: RuntimeContext, shape: tuple[int, ...]) -> Array:
    """Return f32 numbers from -8 to 7, whose sums are exact in any order."""
    Draw(torch).check_room(shape, np.float32)
    return np.random.default_rng(torch.seed).integers(-8, 8, shape).astype(np.float32)


def deploy(torch: RuntimeContext, name: str, values: Array, policy: DPPolicy) -> Tensor:
    """Return a tensor with these values, put there outside of simulated time."""
    tensor = torch.empty(values.shape, dtype_of(values.dtype), dp=policy, name=name)
    return tensor.copy_(torch.from_numpy(values), timed=False)


def reserve(
    torch: RuntimeContext, name: str, shape: tuple[int, ...], dtype: str, policy: DPPolicy
) -> Tensor:
    """Return room for results, all zero, made outside of simulated time."""
    return torch.zeros(shape, dtype, dp=policy, name=name, timed=False)
