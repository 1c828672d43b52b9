"""The plots of a page of decode steps: quality over latency, and the stages of each step."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.report.decode_page.model import DecodePage, ShownStep, context_text
from tilewright.report.format import short_latency
from tilewright.report.plot import Plot, legend_mark, open_plot, set_log_scale
from tilewright.report.style import COLOURS, flow_role, series_mark, stage_role
from tilewright.report.svg import shorten
from tilewright.units import format_ps, share_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


WIDTH, TOP, ROW = 960, 44, 32
LABEL_AT, LABEL_WIDTH, TEXT_SIZE = 16, 216, 13
SHARES_AT, SHARES_WIDTH = 240, 400
TIMES_AT, TIMES_WIDTH = 672, 140  # the figures stand behind their bars
FASTER_AT = WIDTH - 16
GROUP_GAP = 0.45  # in rows
LEGEND_COLUMNS, LEGEND_ROW, STAGE_WIDTH = 5, 24, 150


def stage_names(steps: Sequence[ShownStep]) -> tuple[str, ...]:
    """Return those of all steps, in the order of the step that has the most of them."""
    ordered = sorted(steps, key=lambda step: -len(step.attention.stages))
    return tuple(dict.fromkeys(stage.name for step in ordered for stage in step.attention.stages))


def draw_stages(page: DecodePage) -> str:
    """Return the text of an SVG; equal pages give equal bytes."""
    steps = sorted(page.steps, key=lambda step: step.context)
    names = stage_names(steps)
    num_rows = len(steps) + GROUP_GAP * (len(page.contexts) - 1)
    bottom = TOP + ROW * num_rows
    height = bottom + 20 + LEGEND_ROW * -(-len(names) // LEGEND_COLUMNS)
    with open_plot(WIDTH, height, "Stages of each decode step as shares, and its latency") as plot:
        shares = plot.rows(SHARES_AT, TOP, SHARES_WIDTH, ROW * num_rows, num_rows)
        times = plot.rows(TIMES_AT, TOP, TIMES_WIDTH, ROW * num_rows, num_rows)
        shares.set_xlim(0, 1)
        times.set_xlim(0, max(step.attention.latency_ps for step in steps) or 1)
        plot.text(SHARES_AT, 20, "share of the step's latency", fontweight="bold")
        plot.text(TIMES_AT, 20, "latency", fontweight="bold")
        for index, step in enumerate(steps):
            row = index + GROUP_GAP * page.contexts.index(step.context)
            middle = TOP + ROW * (row + 0.5)
            plot.text(LABEL_AT, middle, shorten(step.label, LABEL_WIDTH, size=TEXT_SIZE))
            plot.bar(shares, row, _pieces(step, names))
            pale = COLOURS["pale"]
            plot.bar(
                times,
                row,
                [(step.attention.latency_ps, pale, format_ps(step.attention.latency_ps))],
            )
            end = TIMES_AT + TIMES_WIDTH * step.attention.latency_ps / times.get_xlim()[1]
            plot.text(end + 8, middle, short_latency(step.attention.latency_ps))
            if step.speedup != 1.0:
                faster = f"{step.speedup:.1f} x"
                plot.text(FASTER_AT, middle, faster, fontweight="bold", ha="right")
        legend = [
            (legend_mark(shares, "s", COLOURS[stage_role(index)], markersize=12), name)
            for index, name in enumerate(names)
        ]
        plot.legend(LABEL_AT, bottom + 16, legend, width=STAGE_WIDTH, columns=LEGEND_COLUMNS)
        return plot.render()


def _pieces(step: ShownStep, names: Sequence[str]) -> list[tuple[float, str, str]]:
    found = []
    for stage in step.attention.stages:
        if stage.latency_ps:
            share = stage.latency_ps / step.attention.latency_ps
            tip = f"{step.label}, {stage.name}: {format_ps(stage.latency_ps)}, {share_text(share)}"
            found.append((share, COLOURS[stage_role(names.index(stage.name))], tip))
    return found


HEIGHT = 420
LEGEND_AT, LEGEND_WIDTH = 744, 170
LEAST_MARK, MORE_MARK = 9.0, 5.0  # a longer context has a larger mark


def draw_quality_over_latency(page: DecodePage) -> str:
    """Return the text of an SVG; equal pages give equal bytes."""
    title = "Quality over latency: attention mass kept, and time of a step"
    with open_plot(WIDTH, HEIGHT, title) as plot:
        axes = plot.axes(72, 56, 640, 292)
        axes.set_title("attention mass kept (dense keeps all of it)")
        hint = "up and to the left is better"
        axes.set_title(hint, loc="right", fontsize=13, fontweight="normal")
        axes.set_xlabel("latency of a decode step, logarithmic", fontweight="bold", labelpad=12)
        axes.set_ylim(0, 1.04)
        axes.yaxis.set_major_formatter(lambda share, _: share_text(share))
        times_ps = [max(step.attention.figure_ps, 1) for step in page.steps]
        set_log_scale(axes, "x", times_ps, lambda time_ps: format_ps(round(time_ps)))
        for index, flow in enumerate(page.flows):
            _add_flow(plot, axes, page, index, flow)
        _add_legends(plot, axes, page)
        return plot.render()


def _add_flow(plot: Plot, axes: "Axes", page: DecodePage, index: int, flow: str) -> None:
    """Add a line over contexts: a flow has one quality, measured once."""
    mass, colour = min(max(page.quality[flow].mass, 0.0), 1.0), COLOURS[flow_role(index)]
    steps = sorted((s for s in page.steps if s.flow == flow), key=lambda step: step.context)
    times_ps = [max(step.attention.figure_ps, 1) for step in steps]
    line = axes.plot(times_ps, [mass] * len(times_ps), color=colour, zorder=2)
    plot.tip(line, f"{flow}: {share_text(mass)}")
    for step, time_ps in zip(steps, times_ps, strict=True):
        tip = f"{step.label}: {format_ps(step.attention.figure_ps)}, {share_text(mass)} of the mass"
        size = _size(page, step.context)
        plot.mark(axes, time_ps, mass, series_mark(index), colour, tip, markersize=size)


def _add_legends(plot: Plot, axes: "Axes", page: DecodePage) -> None:
    flows = [
        (
            legend_mark(axes, series_mark(index), COLOURS[flow_role(index)], markersize=11),
            flow,
        )
        for index, flow in enumerate(page.flows)
    ]
    plot.legend(LEGEND_AT, 56, flows, width=LEGEND_WIDTH)
    contexts = [
        (
            legend_mark(axes, "o", COLOURS["pale"], markersize=_size(page, context)),
            f"{context_text(context)} tokens",
        )
        for context in page.contexts
    ]
    plot.legend(LEGEND_AT, 72 + 26 * len(flows), contexts, width=LEGEND_WIDTH)


def _size(page: DecodePage, context: int) -> float:
    return LEAST_MARK + MORE_MARK * page.contexts.index(context)
