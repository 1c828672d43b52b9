"""What a record says about its memory traffic: bandwidth, latency or refresh."""

from collections.abc import Iterator

from tilewright.analysis.advice.build import Estimate
from tilewright.records import RunRecord
from tilewright.records.explain import Remark
from tilewright.units import PS_PER_US, count_text, format_bytes, format_ps, format_rate, share_text

BOUND_SHARE = 0.4  # of the time, from which on a run waits for memory
FULL_USE = 0.85
WORTH_TELLING = 0.05
CROWDED = 0.2  # of the time: accesses wait for others while channels stand still
SRAM = ".sram"


def explain_memory(record: RunRecord) -> Iterator[Remark]:
    """Bandwidth if a slice is used to the full, else latency."""
    parts, total_ps = record.breakdown_ps, record.latency_ps
    waiting_ps = parts.memory_read + parts.memory_write + parts.link_queueing + parts.refresh
    memories = {
        name: share
        for name, share in record.utilisation.items()
        if ("hbm_ctrl" in name or name.endswith(SRAM)) and "->" not in name
    }
    if waiting_ps >= BOUND_SHARE * total_ps and memories:
        busiest = max(memories, key=lambda name: memories[name])
        use = memories[busiest]
        waiting, estimate = waiting_ps / total_ps, Estimate(record)
        if use >= FULL_USE:
            text = _bandwidth(record, waiting, busiest, use)
        elif estimate.crowding_ps >= CROWDED * total_ps:
            text = _crowded(record, estimate, waiting)
        else:
            text = _latency(record, waiting, busiest, use)
        yield Remark(topic="memory", text=text)
    if parts.refresh >= WORTH_TELLING * total_ps:
        yield Remark(topic="refresh", text=_refresh(record))


def _crowded(record: RunRecord, estimate: Estimate, waiting: float) -> str:
    num_channels = 0 if record.channels is None else len(record.channels.shares)
    return (
        f"Crowded pseudo-channels: {share_text(waiting)} of the time is memory traffic, and "
        f"accesses wait {format_ps(estimate.memory_queue_ps)} of it for others, but on average "
        f"only {estimate.channels_in_use:.1f} of {num_channels} pseudo-channels of a slice move "
        "data: addresses that are used together lie in few of them."
    )


def _bandwidth(record: RunRecord, waiting: float, busiest: str, use: float) -> str:
    if busiest.endswith(SRAM):
        return (
            f"SRAM-bound: {share_text(waiting)} of the time is memory traffic, and {busiest} is in "
            f"use {share_text(use)} of the time. Fewer bytes would help, or more cubes that hold "
            "them."
        )
    return (
        f"HBM-bound: {share_text(waiting)} of the time is memory traffic, and {busiest} is in use "
        f"{share_text(use)} of the time, refresh included. {_achieved(record)} Fewer bytes would "
        f"help, or more slices to hold them."
    )


def _latency(record: RunRecord, waiting: float, busiest: str, use: float) -> str:
    return (
        f"Memory latency: {share_text(waiting)} of the time is memory traffic, but no slice is in "
        f"use more than {share_text(use)} of the time ({busiest}). {_achieved(record)}"
    )


def _achieved(record: RunRecord) -> str:
    """Bytes over time beside the refresh-limited peak of the slices of as many PEs."""
    num_bytes = record.counters.get("loaded_bytes", 0) + record.counters.get("stored_bytes", 0)
    num_pes = record.num_pes
    figures = record.machine.figures
    peak_bytes_per_us = figures.refreshed_hbm_bytes_per_us * num_pes // figures.num_pes
    if not num_bytes or not peak_bytes_per_us:
        return ""
    share = num_bytes * PS_PER_US / (record.latency_ps * peak_bytes_per_us)
    rate = format_rate(num_bytes, elapsed_ps=record.latency_ps)
    return (
        f"The programs moved {format_bytes(num_bytes)} at {rate}, {share_text(share)} of the "
        f"refresh-limited peak of the slices of {count_text(num_pes, 'PE')}."
    )


def _refresh(record: RunRecord) -> str:
    share = record.breakdown_ps.refresh / record.latency_ps
    figures = record.machine.figures
    least = 1 - figures.refreshed_hbm_bytes_per_us / max(1, figures.hbm_bytes_per_us)
    kind = record.machine.fields.get("cube.hbm.refresh.kind")
    text = (
        f"Refresh holds accesses up for {share_text(share)} of the time; in the long run it takes "
        f"{share_text(least)} of a stream."
    )
    if share > 2 * least:
        return f"{text} A run this short meets a refresh by chance: a longer one tells more."
    return f"{text} The machine refreshes by cube.hbm.refresh.kind={kind}." if kind else text
