"""``tilewright demo``."""

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.output import note
from tilewright.cli.speed_table import speed_table
from tilewright.cli.startup import engine_line
from tilewright.engine import AUTO, native_built, resolve_engine
from tilewright.records import DemoRecord, MachineFigures, ProbeRecord, ProbeRow
from tilewright.report.machine_svg_figure import flops_text, rate_text
from tilewright.studies.demo import CASES, LARGE_BYTES, SMALL_BYTES, run_demo
from tilewright.units import format_bytes, format_ps

__all__ = ("demo",)


def demo(_json: JsonOption = False) -> Outcome:
    """Show a machine, what its distances cost, and both engines.

    Builds the default machine `ahbm`, reads and writes its memory from near and far, alone and in
    a crowd, and sets each time beside a lower bound. Then runs both event engines, readable Python
    and C++, on three loads and compares every arrival time. Under a minute; exit status 1 if a time
    breaks its bound or the engines disagree.
    """
    built = native_built()
    note(engine_line(resolve_engine(AUTO, native_built=built).value, built))
    record = run_demo(progress=note)
    return Outcome(record, _view(record), passed=record.identical and record.probe.ok)


def _view(record: DemoRecord) -> RenderableType:
    return Group(
        _paragraph(_machine_text(record.probe.machine, record.figures)),
        _probe_table(record.probe),
        *map(_paragraph, _probe_meaning(record.probe)),
        speed_table(record.workloads),
        _paragraph(_engine_meaning(record)),
        Text(_NEXT),
    )


def _paragraph(text: str) -> Text:
    return Text(f"{text}\n")


def _machine_text(name: str, figures: MachineFigures) -> str:
    nominal = rate_text(figures.hbm_bytes_per_us)
    refreshed = rate_text(figures.refreshed_hbm_bytes_per_us)
    return (
        f"The machine {name}: {figures.num_sips} packages (SIPs) of compute dies (cubes), "
        f"{figures.num_cubes} in all, with {figures.num_pes} processing elements (PEs). "
        f"At best {flops_text(figures.f16_flop_per_s)} in f16; "
        f"{format_bytes(figures.hbm_bytes)} of HBM at {nominal}, "
        f"of which refresh leaves {refreshed}."
    )


def _probe_table(probe: ProbeRecord) -> Table:
    small, large = (format_bytes(size) for size in (SMALL_BYTES, LARGE_BYTES))
    table = Table(
        title=f"Reads and writes of {small} and of {large} by each issuer",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("case", no_wrap=True)
    for heading in (small, large, "ratio", "GB/s", f"most of {large}"):
        table.add_column(heading, justify="right", no_wrap=True)
    rows = _rows(probe)
    for case in CASES:
        row = rows[case, LARGE_BYTES]
        table.add_row(
            case,
            format_ps(rows[case, SMALL_BYTES].latency_ps),
            format_ps(row.latency_ps),
            f"{row.ratio:.2f}",
            f"{row.bandwidth_gbs:.1f}",
            _greatest_part(row),
        )
    return table


def _rows(probe: ProbeRecord) -> dict[tuple[str, int], ProbeRow]:
    return {(row.case, row.bytes): row for row in probe.cases}


def _greatest_part(row: ProbeRow) -> str:
    name, part_ps = max(row.breakdown_ps, key=lambda part: part[1])
    return f"{name} {part_ps / row.latency_ps:.0%}"


def _probe_meaning(probe: ProbeRecord) -> Iterator[str]:
    if not probe.ok:
        yield "\n".join(["These checks do NOT hold:", *probe.failures])
        return
    rows = _rows(probe)
    near, far = (rows[case, SMALL_BYTES] for case in ("pe_local", "pe_other_sip"))
    own, next_cube, crowd, port = (
        rows[case, LARGE_BYTES].bandwidth_gbs
        for case in ("pe_local", "pe_next_cube", "hot_8", "east_port_8")
    )
    yield (
        f"Distance (pe_*: one PE reads): {format_bytes(SMALL_BYTES)} from its own slice of the HBM "
        f"take {format_ps(near.latency_ps)}, from the other package "
        f"{far.latency_ps / near.latency_ps:.0f} times as long{_met_refresh(far)}. "
        f"A PE gets {own:.0f} GB/s from its own slice and {next_cube:.0f} GB/s from the next cube."
    )
    yield (
        f"Contention: eight PEs that read one slice (hot_8) share {crowd:.0f} GB/s; eight that "
        f"write to the next cube (east_port_8) share {port:.0f} GB/s of its port."
    )
    yield (
        "ratio: time over a lower bound without queueing and refresh, so 1.00 is as good as it "
        "gets. GB/s counts all bytes of a case. most of: the greatest part of that time."
    )


def _met_refresh(row: ProbeRow) -> str:
    """A short read may meet one by chance, which says nothing about distance."""
    refresh_ps = row.breakdown_ps.refresh
    return f" ({format_ps(refresh_ps)} of it a refresh)" if refresh_ps else ""


def _engine_meaning(record: DemoRecord) -> str:
    if not record.identical:
        return "The engines DISAGREE: their digests differ. Please report this as a bug."
    if len({row.implementation for row in record.workloads}) == 1:
        return (
            "One engine ran, since this install has no compiled core; with one, a second engine "
            "gives the same digests and runs many times faster."
        )
    return (
        "Equal digests: both engines computed the same arrival time, to the picosecond, for every "
        "packet. A hop is one packet passing one link, with queueing; ev/hop: events per hop."
    )


_NEXT = (
    "Next: `tilewright machine show` and `tilewright probe` tell more about this machine, "
    "and docs/guides/describe-a-machine.md makes one of your own."
)
