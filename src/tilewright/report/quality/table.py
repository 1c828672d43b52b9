"""A comparison of flows for people: one table, the order by mass, and how it was measured."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from textwrap import wrap

from rich.text import Text

from tilewright.records.attention.compare import (
    AttentionCompareRecord,
    FlowDifference,
    Interval95,
    LatencyFigures,
    QualityRow,
)
from tilewright.units import format_ps

Cell = Callable[[QualityRow], str]
FRONT = "*"
ONLY_IN_JSON = ("worst", "stable", "ppl")  # of tables with time
WIDTH = 80
PAGES_OF = {
    "recorded": "the pages that the flow selected",
    "uniform": "pages drawn at random, as many as the budget",
}


def quality_view(record: AttentionCompareRecord) -> Text:
    """Lines of a fixed width: the name of a flow, and of a machine, stands above its budgets."""
    columns = quality_columns(record.rows)
    widths = {
        name: max(len(name), *(len(cell(row)) for row in record.rows)) if record.rows else len(name)
        for name, cell in columns.items()
    }
    view = Text()
    view.append("\n".join((*_title(record), "")), style="bold")
    view.append(_line({name: name for name in columns}, widths), style="dim")
    for (machine, flow), rows in groupby(record.rows, key=lambda row: (row.machine, row.flow)):
        view.append(f"{flow}\n" if machine is None else f"{flow} on {machine}\n")
        for row in rows:
            view.append(_line({name: cell(row) for name, cell in columns.items()}, widths))
    view.append("\n".join(("", *_notes(record))))
    return view


def quality_columns(rows: tuple[QualityRow, ...]) -> dict[str, Cell]:
    """Headings, and what stands below them; figures that the source does not have are left out.

    With machines, time takes the place of three figures: a line has 80 letters.
    """
    columns: dict[str, Cell] = {
        "pages": lambda row: f"{FRONT if row.is_pareto else ' '}{row.budget:4}",
        "mass": lambda row: f"{row.mass:.3f}{_margin(row.mass, row.mass_ci)}",
        "worst": lambda row: f"{row.worst_head_mass:.3f}",
        "best": lambda row: f"{row.oracle_ratio:.3f}",
        "error": lambda row: f"{row.output_error:.3f}",
        "stable": lambda row: "-" if row.stability is None else f"{row.stability:.2f}",
        "bytes": lambda row: f"{row.bytes / row.dense_bytes:.3f}",
    }
    if any(row.kl is not None for row in rows):
        columns["KL"] = lambda row: f"{row.kl or 0.0:.3f}{_margin(row.kl or 0.0, row.kl_ci)}"
        columns["NLL"] = lambda row: f"{row.nll or 0.0:.3f}"
        columns["ppl"] = lambda row: f"{row.perplexity_difference or 0.0:+.2f}"
    if any(row.needle_cases for row in rows):
        columns["hits"] = lambda row: f"{row.needle_hits}/{row.needle_cases}"
    if any(row.machine is not None for row in rows):
        columns = {name: cell for name, cell in columns.items() if name not in ONLY_IN_JSON}
        columns["time"] = lambda row: "-" if row.latency_ps is None else format_ps(row.latency_ps)
        columns["faster"] = _speedup
    return columns


def order_lines(differences: tuple[FlowDifference, ...]) -> Iterator[str]:
    """Flows of each budget, the most mass first; ``~`` between two that noise could have swapped.

    >>> one = FlowDifference(budget=8, flow="a", behind="b", mass_difference=0.1,
    ...     mass_difference_ci=(0.0, 0.2), is_noise=True)
    >>> list(order_lines((one,)))
    ['  8 pages: a ~ b']
    """
    for budget, group in groupby(differences, key=lambda one: one.budget):
        found = list(group)
        words = [found[0].flow]
        for one in found:
            words += ["~" if one.is_noise else ">", one.behind]
        yield f"{budget:>3} pages: {' '.join(words)}"


def _line(cells: dict[str, str], widths: dict[str, int]) -> str:
    return " ".join(f"{text:>{widths[name]}}" for name, text in cells.items()) + "\n"


def _title(record: AttentionCompareRecord) -> tuple[str, str]:
    sizes = record.sizes
    measured = (
        f"{record.source.name}: {sizes.context} tokens in pages of {sizes.page_size}, "
        f"{sizes.cases} x {sizes.steps} tokens decoded, seed {record.seed}"
    )
    always = (
        f"always read: first {sizes.reserved_first} and last {sizes.reserved_last} pages, "
        f"every page of {sizes.dense_layers} layers"
    )
    return measured, always


def _notes(record: AttentionCompareRecord) -> Iterator[str]:
    less = "for fewer bytes" if record.latency is None else "in less time"
    yield f"{FRONT} nothing, dense attention included, has as much mass {less}."
    yield "Means are given +- 95 % confidence."
    if record.latency is not None:
        yield from _latency_lines(record.latency, record.rows)
    dense = _dense_line(record.rows)
    if dense:
        yield dense
    if record.differences:
        yield "By mass, step by step on equal queries (~: inside the noise):"
        yield from order_lines(record.differences)
    if record.trials_kept:
        yield f"{record.trials_kept} trials are from an earlier run."
    if record.latencies_kept:
        yield f"{record.latencies_kept} latencies are from an earlier run."
    if record.status == "interrupted":
        yield "INTERRUPTED: the rows above were complete by then."
    if record.state is not None:
        yield f"A second run continues from {record.state}."


def _dense_line(rows: tuple[QualityRow, ...]) -> str:
    if not rows or (rows[0].dense_nll is None and rows[0].dense_needle_hits is None):
        return ""
    parts = [] if rows[0].dense_nll is None else [f"NLL {rows[0].dense_nll:.3f}"]
    if rows[0].dense_needle_hits is not None:
        parts.append(f"needles {rows[0].dense_needle_hits}/{rows[0].needle_cases}")
    return f"Dense attention: {', '.join(parts)}, {rows[0].dense_bytes:,} bytes a step."


def _speedup(row: QualityRow) -> str:
    if row.latency_ps is None or row.dense_latency_ps is None:
        return "-"
    return f"{row.dense_latency_ps / row.latency_ps:.2f}x"


def _margin(mean: float, interval: Interval95) -> str:
    """Half of the interval; nothing where one sample has none."""
    return "" if interval is None else f"+-{interval[1] - mean:.2f}".replace("+-0.", "+-.")


def _latency_lines(figures: LatencyFigures, rows: Sequence[QualityRow]) -> Iterator[str]:
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
        yield from _dense_time(machine.name, mine)
        yield from _missing_times(machine.name, mine)


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


def _dense_time(name: str, rows: Sequence[QualityRow]) -> Iterator[str]:
    if not rows:
        return
    latency_ps, missing = rows[0].dense_latency_ps, rows[0].dense_latency_missing
    found = f"not simulated: {missing}" if latency_ps is None else format_ps(latency_ps)
    yield from wrap(f"Dense attention on {name}: {found}.", WIDTH)


def _missing_times(name: str, rows: Sequence[QualityRow]) -> Iterator[str]:
    """Each reason once, with the flows that it keeps from a time."""
    flows: dict[str, list[str]] = {}
    for row in rows:
        if row.latency_missing is not None and row.flow not in flows.setdefault(
            row.latency_missing, []
        ):
            flows[row.latency_missing].append(row.flow)
    for reason, found in flows.items():
        yield from wrap(f"No time on {name} for {', '.join(found)}: {reason}.", WIDTH)
