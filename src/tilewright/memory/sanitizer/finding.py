"""What the sanitizer has found: kinds, both sides of each finding, and a text of it all."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from tilewright.errors import SanitizerError
from tilewright.memory.sanitizer.access import Access
from tilewright.records.run.part import FlaggedAccess

MAX_FINDINGS = 100


class FindingKind(Enum):
    """What is wrong with an access."""

    UNINITIALISED = "uninitialised read"
    OUT_OF_BOUNDS = "out of bounds"
    USE_AFTER_FREE = "use after free"
    STALE_PAGE = "stale page"
    RACE = "race"
    QUEUE_RACE = "race over a queue"


FIXES = {
    FindingKind.UNINITIALISED: "write these bytes before, or mask the access",
    FindingKind.OUT_OF_BOUNDS: "mask what lies outside, or correct the address",
    FindingKind.USE_AFTER_FREE: "keep the tensor until the launch has been waited for",
    FindingKind.STALE_PAGE: "touch a PE's own shard, and unmap only what no launch uses any more",
    FindingKind.RACE: "let programs write different bytes, use atomics, or make two launches of it",
    FindingKind.QUEUE_RACE: (
        "send what the access has loaded, or wait for it (tl.wait, a value that Python needs)"
        " before the message"
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake: where in which tensor, who is involved, and how often lines did the same."""

    kind: FindingKind
    tensor: str
    element: str  # the first that is hit, "x[3, 0]"
    num_bytes: int
    detail: str
    sides: tuple[FlaggedAccess, ...]  # the access; of a race the earlier one and the later one
    count: int = 1

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(side.line for side in self.sides)

    @property
    def key(self) -> tuple[object, ...]:
        """What counts as the same mistake."""
        return (self.kind, self.tensor, *(f"{side.what} {side.line}" for side in self.sides))

    def __str__(self) -> str:
        times = f", {self.count} times" if self.count > 1 else ""
        head = (
            f"{self.kind.value}: {self.num_bytes} bytes from {self.element} of {self.tensor}{times}"
        )
        sides = [f"  {side}" for side in self.sides]
        return "\n".join([head, *sides, f"  {self.detail}", f"  fix: {FIXES[self.kind]}"])


def side_of(access: Access) -> FlaggedAccess:
    """Return what a finding says of an access."""
    at_ps = access.at_ps if access.at_ps >= 0 else None
    return FlaggedAccess(
        what=access.kind.value,
        actor=access.actor,
        line=access.line,
        at_ps=at_ps,
        num_bytes=access.num_bytes,
    )


@dataclass(eq=False)
class Findings:
    """Findings in the order in which they were made, each pair of lines once.

    The first ``limit`` of them are kept; how many there were in all is known.
    """

    limit: int = MAX_FINDINGS
    num_left_out: int = 0
    _findings: dict[tuple[object, ...], Finding] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings.values())

    def add(self, finding: Finding) -> None:
        known = self._findings.get(finding.key)
        if known is not None:
            self._findings[finding.key] = replace(known, count=known.count + finding.count)
        elif len(self._findings) < self.limit:
            self._findings[finding.key] = finding
        else:
            self.num_left_out += 1

    @property
    def text(self) -> str:
        """For people; empty if nothing was found."""
        lines = [f"{number}. {finding}" for number, finding in enumerate(self, 1)]
        if self.num_left_out:
            lines.append(f"{self.num_left_out} more findings at other lines were left out")
        return "\n".join(lines)

    def check(self) -> None:
        """Raise what was found."""
        if not self._findings:
            return
        kinds = [finding.kind.value for finding in self]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        found = f"{len(self)} mistakes ({counts})\n{self.text}\n"
        fix = "correct the lines that are named"
        raise SanitizerError("sanitizer", found, "none", fix, tuple(self))
