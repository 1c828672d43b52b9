"""Advice against measured runs: AV1 to AV4.

AV1 and AV2 make every single change of a run. On machines without refresh one run of each is
enough; the slow ones are of machines as they are, with means over refresh phases.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial

from tilewright.analysis.advice.bound import shortest_ps
from tilewright.analysis.advice.build import advise
from tilewright.analysis.advice.change import INTERLEAVE, Change, single_changes
from tilewright.engine import EngineKind
from tilewright.records import RunRecord
from tilewright.studies.explain_measure import Gain, GainMeter
from tilewright.studies.run.command import RunWatch, run_program
from tilewright.studies.run.execute import RunRequest
from tilewright.studies.run.source import find_source
from tilewright.validation.engine_run import machine_named
from tilewright.validation.finding import Finding, Row, at_least, exact

QUIET = "cube.hbm.refresh.kind=none"
SMALL, LARGE = "ahbm-small", "ahbm"
PROGRAMS = (
    "matmul",
    "softmax",
    "flash_attention",
    "decode_attention",
    "stream",
    "allreduce",
    "allreduce_ring",
)
QUICK_PROGRAMS = ("matmul", "softmax", "pointer_chase", "gemm_single_pe", "allreduce_ring")
HALF = Fraction(1, 2)
FABRIC_LATENCY = "fabric.latency_ps"
FABRIC_PS, NUM_PASSES, LINKS_OF_PASS = 200_000, 2, 2  # of ahbm: SIP to switch, switch to SIP
CROWDED = {"staging": "load/ref", "pes": 1}  # pieces of 128 bytes, in 2 of 8 pseudo-channels


@dataclass(slots=True)
class Trial:
    """A recorded run, and all single changes of its machine, measured when they are asked for."""

    record: RunRecord
    meter: GainMeter
    _gains: dict[Change, Gain] = field(default_factory=dict)

    def gain(self, change: Change) -> Gain:
        """Return what a change gains."""
        if change not in self._gains:
            self._gains[change] = self.meter.gain(f"{change.field}={change.value}")
        return self._gains[change]

    def single_gains(self) -> Mapping[Change, Gain]:
        """Return the gains of all changes that double a rate or halve a latency."""
        changes = single_changes(self.record.machine.fields)
        return {change: self.gain(change) for change in changes}

    @property
    def first(self) -> Change:
        """The first advice."""
        first = advise(self.record)[0]
        return Change(first.field, int(first.option.rpartition("=")[2]))


def trial_of(
    kind: EngineKind,
    program: str,
    machine: str,
    overrides: tuple[str, ...] = (),
    parameters: Mapping[str, object] | None = None,
    *,
    phases: int | None = None,
) -> Trial:
    """Run a ready program, as ``tilewright run`` does but without values."""
    source = find_source(program)
    values = {each.name: each.default for each in source.parameters} | dict(parameters or {})
    built = machine_named(machine, *overrides)
    request = RunRequest(source, values, built, machine, overrides, engine=kind, data=False)
    record = run_program(request, RunWatch(phases=phases))
    count = 1 if record.phases is None else record.phases.count
    return Trial(record, GainMeter(request, count))


@cache
def _trial(kind: EngineKind, program: str, machine: str, *overrides: str) -> Trial:
    return trial_of(kind, program, machine, overrides)


def check_bounds(kind: EngineKind, *, place: tuple[str, ...]) -> Finding:
    """AV1: changed runs that are shorter than advice says any can be, at any refresh phase."""
    trial = _trial(kind, *place)
    broken = sum(
        min(gain.changed_ps) < shortest_ps(trial.record, change)
        for change, gain in trial.single_gains().items()
    )
    return exact(0, broken, "changes")


def check_first(kind: EngineKind, *, place: tuple[str, ...]) -> Finding:
    """AV2: the gain of the first advice over that of the best single change."""
    trial = _trial(kind, *place)
    best = max(gain.share for gain in trial.single_gains().values())
    return at_least(HALF, Fraction(trial.gain(trial.first).share) / Fraction(best), "of the best")


def check_fabric(kind: EngineKind) -> Finding:
    """AV3: the critical path of an all-reduce of two SIPs has its two passes, one after the other.

    Each goes to the switch and on to the other SIP.
    """
    record = _trial(kind, "allreduce", LARGE, QUIET).record
    found_ps = 0 if record.path is None else record.path.least_ps.get(FABRIC_LATENCY, 0)
    return exact(NUM_PASSES * LINKS_OF_PASS * FABRIC_PS, found_ps, "ps")


def check_crowding(kind: EngineKind) -> Finding:
    """AV4: the gain of the first advice for a product whose loads lie in 2 of 8 channels.

    Spread over twice as many they take half the time, so that the next resource limits them.
    """
    trial = trial_of(kind, "matmul", LARGE, (QUIET, "pe.gemm.hz=2000000000"), CROWDED)
    share = trial.gain(trial.first).share if trial.first.field == INTERLEAVE else 0.0
    return at_least(Fraction(1, 4), share, "of the time")


def oracles() -> Iterator[Row]:
    for machine, programs, overrides in (
        (SMALL, QUICK_PROGRAMS, (QUIET,)),
        (SMALL, PROGRAMS, ()),
        (LARGE, PROGRAMS, ()),
    ):
        is_slow = not overrides
        without = " without refresh" if overrides else ""
        for program in programs:
            what, place = f"{program} on {machine}{without}", (program, machine, *overrides)
            bounds, first = (partial(check, place=place) for check in (check_bounds, check_first))
            yield f"AV1 {what}: runs shorter than stated", bounds, is_slow
            yield f"AV2 {what}: gain of the first advice", first, is_slow
    yield "AV3 allreduce on ahbm: links between SIPs on its path", check_fabric
    yield "AV4 crowded channels: gain of the first advice", check_crowding
