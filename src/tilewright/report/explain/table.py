"""What ``tilewright explain`` knows, as text for people."""

from collections.abc import Iterator

from rich.text import Text

from tilewright.records.explain import Advice, ExplainRecord
from tilewright.records.run.part import ChannelUse
from tilewright.report.format import PART_WORDS
from tilewright.units import format_ps, share_text

LEAST_SHARE = 0.01
RESOURCE_WORDS = {
    "pe.gemm.hz": "GEMM units",
    "pe.vector.hz": "vector units",
    "pe.tcm.read_bytes_per_us": "TCM read ports",
    "pe.tcm.write_bytes_per_us": "TCM write ports",
    "pe.cpu.command_ps": "CPUs of PEs",
    "pe.scheduler.command_ps": "message queues",
    "cube.m_cpu.command_ps": "M_CPUs",
    "sip.io_cpu.command_ps": "IO CPUs",
    "cube.hbm.timing.clock_ps": "HBM pseudo-channels",
    "cube.sram.bytes_per_us": "SRAMs and their links",
    "cube.noc.bytes_per_us": "links between routers",
    "cube.noc.attach_bytes_per_us": "links of PEs and slices",
    "cube.ucie.bytes_per_us": "UCIe connections",
    "sip.io.attach_bytes_per_us": "links of IO CPUs",
    "fabric.bytes_per_us": "links between SIPs",
    "host.pcie.lanes": "PCIe links",
}


def explain_view(record: ExplainRecord) -> Text:
    """Return parts, remarks, use and advice, at most 80 columns wide but for names and remarks."""
    view = Text()
    view.append(record.program, style="bold")
    view.append(f" on {record.machine}: {_latency(record)}\n\n")
    for part in record.parts:
        if part.share >= LEAST_SHARE:
            view.append(f"  {share_text(part.share):>5}  {format_ps(part.time_ps):>11}  ")
            view.append(f"{PART_WORDS[part.part]}\n")
    view.append("\n")
    for remark in record.remarks:
        view.append(f"- {remark.text}\n")
    _add_use(view, record)
    _add_advice(view, record)
    view.rstrip()
    return view


def _latency(record: ExplainRecord) -> str:
    text = format_ps(record.latency_ps)
    if round(record.mean_ps) == record.latency_ps:
        return text
    return f"{text} at refresh phase 0, {format_ps(round(record.mean_ps))} on average"


def _add_use(view: Text, record: ExplainRecord) -> None:
    shown = [row for row in record.resources if row.greatest >= LEAST_SHARE]
    if not shown:
        return
    view.append("\nuse, as a share of the time\n", style="bold")
    view.append(f"  {'busiest':>7}{'median':>8}{'used':>7}\n", style="dim")
    for row in shown:
        words = RESOURCE_WORDS.get(row.field, row.field)
        view.append(f"  {_percent(row.greatest):>7}{_percent(row.median):>8}{row.num_used:>7}")
        view.append(f"  {words}; busiest: {row.busiest}\n")
    if record.channels is not None:
        for line in _channel_lines(record.channels, record.latency_ps):
            view.append(f"  {line}\n")


def _channel_lines(use: ChannelUse, latency_ps: int) -> Iterator[str]:
    shares = " ".join(f"{100 * share:.0f}" for share in use.shares)
    yield f"pseudo-channels of {use.memory}: {shares} %"
    bursts = use.row_hits + use.row_misses
    hits = share_text(use.row_hits / bursts if bursts else 0.0)
    yield f"  {hits} of {bursts} bursts hit open rows"
    if use.banks:
        most = max(use.banks)
        share = min(1.0, most * use.row_cycle_ps / latency_ps) if latency_ps else 0.0
        yield (
            f"  banks of the busiest channel opened {min(use.banks)} to {most} rows; "
            f"row cycles of the busiest bank take {share_text(share)}"
        )


def _add_advice(view: Text, record: ExplainRecord) -> None:
    if record.advice:
        view.append("\nchanges to run with, and the share of the time that each saves\n", "bold")
        width = max(len(advice.option) for advice in record.advice)
        for advice in record.advice:
            view.append(f"  {advice.option:<{width}}  {_gain_text(advice)}\n")
            view.append(f"    {advice.reason}\n")
    for note in record.notes:
        view.append(f"{note}\n")


def _gain_text(advice: Advice) -> str:
    text = f"about {_percent(advice.worth)}, at most {_percent(advice.bound)}"
    if advice.gain is None:
        return text
    width = advice.gain_half_width
    noise = "" if width is None else f" ±{100 * width:.1f}"
    return f"{text}, measured {100 * advice.gain:.1f}{noise} %"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
