"""Quality over latency: a mark for each flow and context; up and to the left is better."""

from typing import TYPE_CHECKING

from tilewright.report.decode_page.model import DecodePage, context_text
from tilewright.report.plot import Plot, legend_mark, open_plot, set_log_scale
from tilewright.report.style import COLOURS, flow_role, series_mark
from tilewright.units import format_ps, share_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 960, 420
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
        times_ps = [max(step.mean_ps, 1) for step in page.steps]
        set_log_scale(axes, "x", times_ps, lambda time_ps: format_ps(round(time_ps)))
        for index, flow in enumerate(page.flows):
            _add_flow(plot, axes, page, index, flow)
        _add_legends(plot, axes, page)
        return plot.render()


def _add_flow(plot: Plot, axes: "Axes", page: DecodePage, index: int, flow: str) -> None:
    """Add a line over contexts: a flow has one quality, measured once."""
    mass, colour = min(max(page.quality[flow].mass, 0.0), 1.0), COLOURS[flow_role(index)]
    steps = sorted((s for s in page.steps if s.flow == flow), key=lambda step: step.context)
    times_ps = [max(step.mean_ps, 1) for step in steps]
    line = axes.plot(times_ps, [mass] * len(times_ps), color=colour, zorder=2)
    plot.tip(line, f"{flow}: {share_text(mass)}")
    for step, time_ps in zip(steps, times_ps, strict=True):
        tip = f"{step.label}: {format_ps(step.mean_ps)}, {share_text(mass)} of the mass"
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
