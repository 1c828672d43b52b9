"""What a ready program is and what its run hands back; the table of them is built here."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tilewright.errors import RegistryError
from tilewright.host import LaunchReport
from tilewright.programs.parameter import NO_FIT, BenchParameter, ProgramFit, parameters_of


@dataclass(frozen=True, slots=True)
class Bound:
    """What no schedule on that machine can beat: the greatest of its parts, and whose it is."""

    total_ps: int
    resource: str
    parts: Mapping[str, int]  # of each resource, a bound: its latencies and its work
    rates: Mapping[str, int] = field(default_factory=dict)
    """Of each resource, its work over its peak rate; all of the part where nothing is said."""

    @classmethod
    def of(cls, parts: Mapping[str, int], rates: Mapping[str, int]) -> "Bound":
        """Take the greatest part."""
        resource = max(parts, key=lambda name: parts[name])
        return cls(parts[resource], resource, parts, rates)

    @property
    def latency_ps(self) -> int:
        """What of the bound is latency."""
        return self.total_ps - self.rate_ps

    @property
    def rate_ps(self) -> int:
        """What of the bound is work over a rate."""
        return self.rates.get(self.resource, self.total_ps)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOutcome:
    """Errors are relative to the norm of a row; None where there were no values to check."""

    bound: Bound
    launches: tuple[LaunchReport, ...]  # the measured window, in the order of submission
    max_error: float | None
    tolerance: float | None
    notes: tuple[str, ...] = ()

    @property
    def values_ok(self) -> bool | None:
        """None: a run without values, which says nothing about them."""
        if self.max_error is None or self.tolerance is None:
            return None
        return self.max_error <= self.tolerance

    @property
    def latency_ps(self) -> int:
        """From the submission of the first launch to the completion of the last one."""
        start_ps = min(launch.submitted_ps for launch in self.launches)
        return max(launch.completed_ps for launch in self.launches) - start_ps


@dataclass(frozen=True, slots=True)
class BenchProgram:
    """``run(torch, **parameters)`` makes tensors, launches kernels and checks values."""

    name: str
    summary: str  # one line
    run: Callable[..., BenchOutcome]
    machine: str = "ahbm"  # the preset it is written for; others do
    fit: ProgramFit = NO_FIT  # which defaults may become smaller on a small machine

    @property
    def parameters(self) -> tuple[BenchParameter, ...]:
        """What may be set, in the order of the signature."""
        return parameters_of(self.run, where=self.name)


def build_programs(programs: Iterable[BenchProgram]) -> Mapping[str, BenchProgram]:
    """A read-only table by name; two programs of one name are refused."""
    table: dict[str, BenchProgram] = {}
    for program in programs:
        if program.name in table:
            found = f"two programs {program.name!r}"
            raise RegistryError("programs", found, "one owner", "rename one")
        table[program.name] = program
    return MappingProxyType(table)
