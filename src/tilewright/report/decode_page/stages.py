"""Where the time of each step went: its stages as shares, beside how long all of it took."""

from collections.abc import Sequence

from tilewright.report.decode_page.format import latency_text
from tilewright.report.decode_page.model import DecodePage, ShownStep
from tilewright.report.plot import legend_mark, open_plot
from tilewright.report.style import COLOURS, stage_role
from tilewright.report.svg import shorten
from tilewright.units import format_ps, share_text

WIDTH, TOP, ROW = 960, 44, 32
LABEL_AT, LABEL_WIDTH, TEXT_SIZE = 16, 216, 13
SHARES_AT, SHARES_WIDTH = 240, 400
TIMES_AT, TIMES_WIDTH = 672, 140  # the figures stand behind their bars
FASTER_AT = WIDTH - 16
GROUP_GAP = 0.45  # in rows
LEGEND_COLUMNS, LEGEND_ROW, LEGEND_WIDTH = 5, 24, 150


def stage_names(steps: Sequence[ShownStep]) -> tuple[str, ...]:
    """Return those of all steps, in the order of the step that has the most of them."""
    ordered = sorted(steps, key=lambda step: -len(step.stages))
    return tuple(dict.fromkeys(stage.name for step in ordered for stage in step.stages))


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
        times.set_xlim(0, max(step.latency_ps for step in steps) or 1)
        plot.text(SHARES_AT, 20, "share of the step's latency", fontweight="bold")
        plot.text(TIMES_AT, 20, "latency", fontweight="bold")
        for index, step in enumerate(steps):
            row = index + GROUP_GAP * page.contexts.index(step.context)
            middle = TOP + ROW * (row + 0.5)
            plot.text(LABEL_AT, middle, shorten(step.label, LABEL_WIDTH, size=TEXT_SIZE))
            plot.bar(shares, row, _pieces(step, names))
            pale = COLOURS["pale"]
            plot.bar(times, row, [(step.latency_ps, pale, format_ps(step.latency_ps))])
            end = TIMES_AT + TIMES_WIDTH * step.latency_ps / times.get_xlim()[1]
            plot.text(end + 8, middle, latency_text(step.latency_ps))
            if step.speedup != 1.0:
                faster = f"{step.speedup:.1f} x"
                plot.text(FASTER_AT, middle, faster, fontweight="bold", ha="right")
        legend = [
            (legend_mark(shares, "s", COLOURS[stage_role(index)], markersize=12), name)
            for index, name in enumerate(names)
        ]
        plot.legend(LABEL_AT, bottom + 16, legend, width=LEGEND_WIDTH, columns=LEGEND_COLUMNS)
        return plot.render()


def _pieces(step: ShownStep, names: Sequence[str]) -> list[tuple[float, str, str]]:
    found = []
    for stage in step.stages:
        if stage.latency_ps:
            share = stage.latency_ps / step.latency_ps
            tip = f"{step.label}, {stage.name}: {format_ps(stage.latency_ps)}, {share_text(share)}"
            found.append((share, COLOURS[stage_role(names.index(stage.name))], tip))
    return found
