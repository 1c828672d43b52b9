"""The resident memory of a process while it runs a scenario."""

import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.soak.scenarios import SCENARIOS

PAGE_BYTES = resource.getpagesize()
NOISE_BYTES = 4 * 2**20  # growth of an allocator's pools that says nothing
WARM_UP = 0.2  # share of the time in which caches and pools fill
MIDDLE = 0.6  # share of the time at which the second measurement begins


@dataclass(frozen=True, slots=True)
class Observation:
    """The largest resident size in the first and in the second part of a scenario's time."""

    num_steps: int  # steps of the whole scenario
    num_later_steps: int  # steps between the middles of both parts
    before_bytes: int
    after_bytes: int
    allowed_bytes: int  # growth that still counts as flat

    @property
    def is_flat(self) -> bool:
        """Whether the memory has not grown by more than is allowed."""
        return self.after_bytes - self.before_bytes <= self.allowed_bytes

    @property
    def growth_per_step(self) -> float:
        """Bytes that one step adds."""
        return (self.after_bytes - self.before_bytes) / max(1, self.num_later_steps)


def observe(name: str, seconds: float) -> Observation:
    """Run a scenario for a wall time in this process, which it should have for itself."""
    scenario = SCENARIOS[name]
    with TemporaryDirectory(prefix="tilewright-soak-") as folder:
        return observe_steps(scenario.steps(Path(folder)), seconds, scenario.kept_bytes)


def observe_steps(steps: Iterator[None], seconds: float, kept_bytes: int) -> Observation:
    """Take steps until the wall time is up; ``kept_bytes`` is what one step may add."""
    start = time.monotonic()
    peaks, counts = [0, 0, 0], [0, 0, 0]
    for _ in steps:
        share = (time.monotonic() - start) / seconds
        part = 0 if share < WARM_UP else 1 if share < MIDDLE else 2
        peaks[part] = max(peaks[part], resident_bytes())
        counts[part] += 1
        if share >= 1:
            break
    before_bytes = peaks[1] or peaks[0]  # a step may take longer than a part
    num_later_steps = counts[2]
    allowed_bytes = NOISE_BYTES + kept_bytes * num_later_steps
    return Observation(sum(counts), num_later_steps, before_bytes, peaks[2], allowed_bytes)


def resident_bytes() -> int:
    """Return the resident size of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
