"""What simulated latencies of a comparison are of, in words."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from tilewright.records.attention_compare import LatencyFigures, QualityRow
from tilewright.units import format_ps

__all__ = ("latency_lines",)

WIDTH = 80
PAGES_OF = {
    "recorded": "the pages that the flow selected",
    "uniform": "pages drawn at random, as many as the budget",
}


def latency_lines(figures: LatencyFigures, rows: Sequence[QualityRow]) -> Iterator[str]:
    """The step, how sure its time is, dense attention, and rows that could not be simulated."""
    step = figures.step
    requests = "1 request" if step.batch == 1 else f"{step.batch} requests"
    heads = f"{step.kv_heads} x {step.query_heads} heads of {step.key_dim}"
    selections = sorted({row.latency_selection for row in rows if row.latency_selection})
    read = " or ".join(PAGES_OF[name] for name in selections) or "nothing"
    text = (
        f"Time: one layer's attention for one token, simulated: {requests} of "
        f"{figures.tokens} tokens, {heads} in {step.dtype}, placement {step.placement}; "
        f"rows read {read}."
    )
    yield from wrap(text, WIDTH)
    yield from _refreshes(figures)
    for machine in figures.machines:
        mine = [row for row in rows if row.machine == machine.name]
        yield from _dense(machine.name, mine)
        yield from _missing(machine.name, mine)


def _refreshes(figures: LatencyFigures) -> Iterator[str]:
    """A step is simulated once, and a refresh falls into it or not."""
    names: dict[int, list[str]] = {}
    for machine in figures.machines:
        names.setdefault(machine.refresh_ps, []).append(machine.name)
    for refresh_ps, found in names.items():
        if refresh_ps:
            text = (
                f"A refresh of the memory of {' and '.join(found)} takes {format_ps(refresh_ps)}; "
                "a step has one more or less by when it begins, so near times may swap."
            )
            yield from wrap(text, WIDTH)


def _dense(name: str, rows: Sequence[QualityRow]) -> Iterator[str]:
    if not rows:
        return
    latency_ps, missing = rows[0].dense_latency_ps, rows[0].dense_latency_missing
    found = f"not simulated: {missing}" if latency_ps is None else format_ps(latency_ps)
    yield from wrap(f"Dense attention on {name}: {found}.", WIDTH)


def _missing(name: str, rows: Sequence[QualityRow]) -> Iterator[str]:
    """Each reason once, with the flows that it keeps from a time."""
    flows: dict[str, list[str]] = {}
    for row in rows:
        if row.latency_missing is not None and row.flow not in flows.setdefault(
            row.latency_missing, []
        ):
            flows[row.latency_missing].append(row.flow)
    for reason, found in flows.items():
        yield from wrap(f"No time on {name} for {', '.join(found)}: {reason}.", WIDTH)
