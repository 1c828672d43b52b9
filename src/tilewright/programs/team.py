"""The PEs that a program takes, and tensors placed on them before the measured time begins."""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from tilewright.errors import BenchError
from tilewright.host import DPPolicy, RuntimeContext, Split, Tensor
from tilewright.language.dtype import dtype_of
from tilewright.runtime.placement.policy import Layout

Array = np.ndarray[Any, Any]

Sips = Annotated[int, "SIPs that take part; 0: all of the device"]
Cubes = Annotated[int, "cubes of a SIP that take part; 0: all"]
Pes = Annotated[int, "PEs of a cube that take part; 0: all"]


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
        """The same with no more than so many PEs a cube."""
        return replace(self, num_pes_per_cube=min(self.num_pes_per_cube, pes))

    def policy(
        self,
        sip: Layout | str = "replicate",
        cube: Layout | str = "replicate",
        pe: Layout | str = "replicate",
    ) -> DPPolicy:
        """A division among the team; a level that is not named has copies."""
        return DPPolicy(
            sip=sip,
            cube=cube,
            pe=pe,
            num_sips=self.num_sips,
            num_cubes=self.num_cubes,
            num_pes=self.num_pes_per_cube,
        )

    def split(self, axis: int) -> DPPolicy:
        """All levels split one axis, so that each PE has its own part."""
        return self.policy(Split(axis), Split(axis), Split(axis))


def team_of(torch: RuntimeContext, *, sips: int = 1, cubes: int = 1, pes: int = 0) -> Team:
    """As the parameters of a program say; 0 stands for all. What is not there is refused."""
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


def deploy(torch: RuntimeContext, name: str, values: Array, policy: DPPolicy) -> Tensor:
    """A tensor with these values, put there outside of simulated time."""
    tensor = torch.empty(values.shape, dtype_of(values.dtype), dp=policy, name=name)
    return tensor.copy_(torch.from_numpy(values), timed=False)


def reserve(
    torch: RuntimeContext, name: str, shape: tuple[int, ...], dtype: str, policy: DPPolicy
) -> Tensor:
    """Room for results, all zero, made outside of simulated time."""
    return torch.zeros(shape, dtype, dp=policy, name=name, timed=False)
