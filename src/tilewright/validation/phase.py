"""Latencies over refresh phases against closed forms: PH1 to PH4."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial

import numpy as np

from tilewright.analysis.phases import MAX_PHASES, T_975, sample_phases, spread_of
from tilewright.device.memory import slice_spec
from tilewright.engine import EngineKind
from tilewright.engine.dram.memory import BankedMemory
from tilewright.engine.dram.spec import BankedSpec
from tilewright.errors import InternalError
from tilewright.host import RuntimeContext
from tilewright.machine.build import shift_refresh
from tilewright.programs import PROGRAMS
from tilewright.validation.engine_run import machine_named
from tilewright.validation.finding import Finding, Row, at_least, at_most, exact, printed

# HBM4 at 8 Gb/s, worked out from the standard's parameters, in ps
INTERVAL_PS, RFC_PS = 3_900_000, 530_000
RCD_PS, RAS_PS, RP_PS, READ_PS = 19_500, 28_500, 16_500, 11_000
ARRIVAL_PS = 20_000_000  # of the access, in the sixth interval
QUIET = "cube.hbm.refresh.kind=none"
LAUNCH = "gemm_single_pe"  # one PE, shorter than a fifth of an interval
NUM_FINE = 390


def _burst_ps(kind: EngineKind, shift_ps: int) -> int:
    """Return how long slice 0 takes for a read of one burst, its banks closed."""
    machine = shift_refresh(machine_named("ahbm"), shift_ps)
    spec = machine.spec
    slice_ = slice_spec(spec.cube.hbm, 0, spec.cube.pes)
    if not isinstance(slice_, BankedSpec):
        raise InternalError("phases", "a simple memory", "banks and refresh", "report this")
    memory = BankedMemory(slice_, kind)
    memory.accept(ARRIVAL_PS, access_id=0, is_write=False, address=0, num_bytes=32)
    done, at_ps = memory.advance(ARRIVAL_PS), memory.next_ps()
    while not done and at_ps is not None:
        done, at_ps = memory.advance(at_ps), memory.next_ps()
    return done[0][1] - ARRIVAL_PS


def _paper_ps(shift_ps: int) -> int:
    """Return the same by the distances of the standard.

    A read that finds the banks under refresh waits for its end. One whose row is open, but not yet
    read, when a refresh is due loses it: RAS, RP and RFC pass before the row can be opened again.
    """
    least_ps = RCD_PS + READ_PS
    since_due_ps = (ARRIVAL_PS - INTERVAL_PS // 8 - shift_ps) % INTERVAL_PS
    if since_due_ps < RFC_PS:
        return least_ps + RFC_PS - since_due_ps
    if INTERVAL_PS - since_due_ps <= RCD_PS:
        return least_ps + RAS_PS + RP_PS + RFC_PS
    return least_ps


def check_burst(kind: EngineKind, *, count: int) -> Finding:
    """PH1: the sum over phases, which differs if any of them does."""
    shifts_ps = [index * INTERVAL_PS // count for index in range(count)]
    wrong = sum(_burst_ps(kind, shift_ps) != _paper_ps(shift_ps) for shift_ps in shifts_ps)
    return exact(0, wrong, "phases")


def check_mean(kind: EngineKind) -> Finding:
    """PH1: the mean over many phases and the integral of its closed form."""
    area = Fraction(RFC_PS**2, 2) + RCD_PS * (RAS_PS + RP_PS + RFC_PS)
    expected_ps = RCD_PS + READ_PS + area / INTERVAL_PS
    shifts_ps = [index * INTERVAL_PS // NUM_FINE for index in range(NUM_FINE)]
    mean_ps = Fraction(sum(_burst_ps(kind, shift_ps) for shift_ps in shifts_ps), NUM_FINE)
    # sampling a jump of at most RFC + RAS + RP at steps of interval / NUM_FINE
    jump_ps = Fraction(RFC_PS + RAS_PS + RP_PS, NUM_FINE)
    return at_most(2 * jump_ps / 1000, abs(mean_ps - expected_ps) / 1000, "ns")


def check_quantile(_kind: EngineKind, *, degrees: int) -> Finding:
    """PH2: the quantile of our table and one by integrating the density of Student's t."""
    return printed(f"{T_975[degrees - 1]:.4f}", _quantile(degrees), "")


def _quantile(degrees: int) -> float:
    """Return t with 0.475 of the density between 0 and t, by bisection of an integral.

    With t = sqrt(n) tan(x) the density becomes cos(x)^(n-1), over 0 to pi/2.
    """
    edges = np.linspace(0, np.pi / 2, 200_001)
    middle = (edges[:-1] + edges[1:]) / 2
    area = np.concatenate(([0.0], np.cumsum(np.cos(middle) ** (degrees - 1))))
    angle = np.interp(0.95 * area[-1], area, edges)
    return float(np.sqrt(degrees) * np.tan(angle))


def check_width(_kind: EngineKind) -> Finding:
    """PH2: half-widths of random latencies, and NumPy's standard deviation times the quantile."""
    generator, worst = np.random.default_rng(1), 0.0
    for count in range(2, MAX_PHASES + 1):
        sample = generator.integers(400_000, 1_000_000, count).tolist()
        spread = spread_of(
            sample, interval_ps=INTERVAL_PS, refresh_ps=RFC_PS, slices=8, reason="asked"
        )
        found = spread.half_width_ps or 0.0
        expected = T_975[count - 2] * float(np.std(sample, ddof=1)) / count**0.5
        worst = max(worst, abs(found / expected - 1))
    return at_most(Fraction(1, 10**12), worst, "of it")


@cache
def _launches_ps(kind: EngineKind) -> tuple[int, ...]:
    spec, latency_of = machine_named("ahbm").spec, partial(_launch_ps, kind)
    spread = sample_phases(spec, None, latency_of(0), latency_of)
    return () if spread is None else spread.latencies_ps


def _launch_ps(kind: EngineKind, shift_ps: int, *overrides: str) -> int:
    machine = shift_refresh(machine_named("ahbm", *overrides), shift_ps)
    with RuntimeContext(machine, engine=kind) as torch:
        return PROGRAMS[LAUNCH].run(torch).latency_ps


def check_count(kind: EngineKind) -> Finding:
    """PH3: a launch that meets refresh in few phases is repeated as often as there are phases."""
    return exact(16, len(_launches_ps(kind)), "phases")


def check_least(kind: EngineKind) -> Finding:
    """PH3: the fastest phase meets no refresh, so it is the launch without refresh."""
    return exact(_launch_ps(kind, 0, QUIET), min(_launches_ps(kind)), "ps")


def check_spread(kind: EngineKind) -> Finding:
    """PH3: phases are RFC apart or less, so one of them waits for nearly a whole refresh."""
    apart_ps = Fraction(INTERVAL_PS, 16)
    found_ps = max(_launches_ps(kind)) - min(_launches_ps(kind))
    return at_least((RFC_PS - apart_ps) / 1000, Fraction(found_ps, 1000), "ns")


def check_most(kind: EngineKind) -> Finding:
    """PH3: shorter than an interval, it waits for no more than one refresh of each access."""
    found_ps = max(_launches_ps(kind)) - min(_launches_ps(kind))
    return at_most((RFC_PS + RAS_PS + RP_PS) / 1000, Fraction(found_ps, 1000), "ns")


def check_periodic(kind: EngineKind) -> Finding:
    """PH4: phases a whole interval apart are one phase."""
    shifts_ps = [index * INTERVAL_PS // 7 for index in range(7)]
    found = sum(
        _burst_ps(kind, shift_ps) != _burst_ps(kind, shift_ps + INTERVAL_PS)
        for shift_ps in shifts_ps
    )
    return exact(0, found, "phases")


def oracles() -> Iterator[Row]:
    for count in (16, 97):
        yield f"PH1 a burst at {count} phases, wrong latencies", partial(check_burst, count=count)
    yield f"PH1 mean of {NUM_FINE} phases, off its closed form", check_mean
    for degrees in (1, 3, 7, 15, 31):
        yield f"PH2 t(0.975, {degrees})", partial(check_quantile, degrees=degrees)
    yield "PH2 half-widths, off t s / sqrt(N)", check_width
    yield f"PH3 {LAUNCH}: phases by the rule", check_count
    yield f"PH3 {LAUNCH}: fastest phase", check_least
    yield f"PH3 {LAUNCH}: least spread", check_spread
    yield f"PH3 {LAUNCH}: greatest spread", check_most
    yield "PH4 phases an interval apart that differ", check_periodic
