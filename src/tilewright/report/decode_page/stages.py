"""Where the time of each step went: one bar a step, a piece for each of its stages."""

from collections.abc import Sequence

from tilewright.report.decode_page.format import latency_text
from tilewright.report.decode_page.model import DecodePage, ShownStep
from tilewright.report.run.format import share_text
from tilewright.report.style import Colours, stage_role
from tilewright.report.svg import Svg, shorten, text_width
from tilewright.units import format_ps

__all__ = ("draw_stages", "stage_names")

WIDTH = 960
LABEL_AT, LABEL_WIDTH = 16, 224
BAR_AT, BAR_WIDTH, BAR_HEIGHT = 248, 532, 22
TIME_AT = 792
TOP, ROW, GROUP_GAP = 44, 32, 14
LEGEND_HEIGHT = 44


def stage_names(steps: Sequence[ShownStep]) -> tuple[str, ...]:
    """Of all steps, in the order of the step that has the most of them."""
    ordered = sorted(steps, key=lambda step: -len(step.stages))
    return tuple(dict.fromkeys(stage.name for step in ordered for stage in step.stages))


def draw_stages(page: DecodePage, colours: Colours) -> str:
    """The text of an SVG; equal pages give equal bytes."""
    names = stage_names(page.steps)
    gaps = GROUP_GAP * max(0, len(page.contexts) - 1)
    height = TOP + ROW * len(page.steps) + gaps + LEGEND_HEIGHT
    svg = Svg(WIDTH, height, "Stages of each decode step, as shares of its latency")
    svg.rect(0, 0, WIDTH, height, fill=colours["ground"], radius=8)
    head = "share of the step's latency"
    svg.text(BAR_AT, 20, head, size=13, anchor="start", bold=True, fill=colours["ink"])
    svg.text(TIME_AT, 20, "latency", size=13, anchor="start", bold=True, fill=colours["ink"])
    top = float(TOP)
    for group, context in enumerate(page.contexts):
        top += GROUP_GAP * (group > 0)
        for step in page.steps:
            if step.context == context:
                _draw_step(svg, top, step, names, colours)
                top += ROW
    _draw_legend(svg, top + 20, names, colours)
    return svg.render()


def _draw_step(
    svg: Svg, top: float, step: ShownStep, names: Sequence[str], colours: Colours
) -> None:
    middle = top + BAR_HEIGHT / 2
    label = shorten(step.label, LABEL_WIDTH, size=13)
    svg.text(LABEL_AT, middle, label, size=13, anchor="start", fill=colours["ink"])
    left = float(BAR_AT)
    for stage in step.stages:
        share = stage.latency_ps / step.latency_ps if step.latency_ps else 0.0
        if stage.latency_ps:
            tip = f"{step.label}, {stage.name}: {format_ps(stage.latency_ps)}, {share_text(share)}"
            fill = colours[stage_role(names.index(stage.name))]
            svg.rect(left, top, BAR_WIDTH * share, BAR_HEIGHT, fill=fill, tip=tip)
            left += BAR_WIDTH * share
    svg.rect(BAR_AT, top, BAR_WIDTH, BAR_HEIGHT, fill="none", stroke=colours["line"])
    time = latency_text(step.latency_ps)
    svg.text(TIME_AT, middle, time, size=13, anchor="start", fill=colours["ink"])
    if step.speedup != 1.0:
        faster = f"{step.speedup:.1f} x"
        svg.text(WIDTH - 16, middle, faster, size=13, anchor="end", bold=True, fill=colours["ink"])


def _draw_legend(svg: Svg, y: float, names: Sequence[str], colours: Colours) -> None:
    x = float(LABEL_AT)
    for place, name in enumerate(names):
        svg.rect(x, y - 7, 14, 14, fill=colours[stage_role(place)], radius=3)
        svg.text(x + 20, y, name, size=12, anchor="start", fill=colours["ink"])
        x += 20 + text_width(name, size=12) + 18
