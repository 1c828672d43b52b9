"""Quality over latency: a mark for each flow and context; up and to the left is better."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log10

from tilewright.report.decode_page.model import DecodePage, ShownStep, context_text
from tilewright.report.run.format import share_text
from tilewright.report.style import Colours, flow_role, place_mark
from tilewright.report.svg import Svg, shorten
from tilewright.units import format_ps

__all__ = ("draw_quality_over_latency",)

WIDTH, HEIGHT = 960, 400
LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT = 64, 52, 640, 276
LEGEND_AT, LEGEND_ROW = 736, 30
QUALITY_TICKS = 5
LEAST_MARK, MORE_MARK = 10, 6  # a longer context has a larger mark
MOST_TICKS = 9


@dataclass(frozen=True, slots=True)
class _LatencyAxis:
    """Logarithmic, from a round time below all latencies to one above them."""

    ticks_ps: tuple[int, ...]

    def x(self, time_ps: int) -> float:
        first, last = log10(self.ticks_ps[0]), log10(self.ticks_ps[-1])
        return LEFT + PLOT_WIDTH * (log10(max(time_ps, 1)) - first) / (last - first)


def draw_quality_over_latency(page: DecodePage, colours: Colours) -> str:
    """The text of an SVG; equal pages give equal bytes."""
    svg = Svg(WIDTH, HEIGHT, "Quality over latency: attention mass kept, and time of a step")
    svg.rect(0, 0, WIDTH, HEIGHT, fill=colours["ground"], radius=8)
    axis = _LatencyAxis(_ticks([step.mean_ps for step in page.steps]))
    _draw_axes(svg, axis, colours)
    for place, flow in enumerate(page.flows):
        steps = [step for step in page.steps if step.flow == flow]
        _draw_flow(svg, page, axis, place, steps, colours[flow_role(place)])
    _draw_legend(svg, page, colours)
    return svg.render()


def _ticks(latencies_ps: list[int]) -> tuple[int, ...]:
    """Round times around all latencies, in steps of 1, 2 and 5 or, if these are many, of 10."""
    shortest, longest = max(1, min(latencies_ps, default=1)), max(latencies_ps, default=1)
    for factors in ((1, 2, 5), (1,)):
        ticks = tuple(_between(shortest, longest, factors))
        if len(ticks) <= MOST_TICKS:
            break
    return ticks


def _between(shortest_ps: int, longest_ps: int, factors: tuple[int, ...]) -> Iterator[int]:
    """The last round time before the shortest, to the first one after the longest."""
    rounds = [factor * 10**power for power in range(19) for factor in factors]
    first = max(n for n, value in enumerate(rounds) if value <= shortest_ps)
    last = next(n for n, value in enumerate(rounds) if value > longest_ps)
    yield from rounds[first : last + 1]


def _y(quality: float) -> float:
    return TOP + PLOT_HEIGHT * (1 - min(max(quality, 0.0), 1.0))


def _draw_axes(svg: Svg, axis: _LatencyAxis, colours: Colours) -> None:
    pale, grid = colours["pale"], colours["grid"]
    right, bottom = LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT
    for tick in range(QUALITY_TICKS + 1):
        y = _y(tick / QUALITY_TICKS)
        svg.line([(LEFT, y), (right, y)], stroke=grid, width=1)
        label = share_text(tick / QUALITY_TICKS)
        svg.text(LEFT - 8, y, label, size=12, anchor="end", fill=pale)
    for time_ps in axis.ticks_ps:
        x = axis.x(time_ps)
        svg.line([(x, TOP), (x, bottom)], stroke=grid, width=1)
        svg.text(x, bottom + 18, format_ps(time_ps), size=12, fill=pale)
    svg.line([(LEFT, TOP), (LEFT, bottom), (right, bottom)], stroke=colours["line"])
    what = "attention mass kept (dense keeps all of it)"
    svg.text(LEFT, 20, what, size=13, anchor="start", bold=True, fill=colours["ink"])
    svg.text(right, 20, "up and to the left is better", size=12, anchor="end", fill=pale)
    below = "latency of a decode step, logarithmic"
    svg.text(LEFT + PLOT_WIDTH / 2, bottom + 46, below, size=13, bold=True, fill=colours["ink"])


def _draw_flow(
    svg: Svg, page: DecodePage, axis: _LatencyAxis, place: int, steps: list[ShownStep], fill: str
) -> None:
    """The line joins contexts: a flow has one quality, measured once."""
    quality = page.quality[steps[0].flow] if steps else None
    if quality is None:
        return
    y = _y(quality.mass)
    ordered = sorted(steps, key=lambda step: step.context)
    points = [(axis.x(step.mean_ps), y) for step in ordered]
    svg.line(points, stroke=fill, width=2, tip=f"{steps[0].flow}: {share_text(quality.mass)}")
    for step, (x, _) in zip(ordered, points, strict=True):
        size = LEAST_MARK + MORE_MARK * page.contexts.index(step.context)
        place_mark(svg, x, y, place, fill=fill, size=size)
        tip = f"{step.label}: {format_ps(step.mean_ps)}, {share_text(quality.mass)} of the mass"
        svg.rect(x - size, y - size, 2 * size, 2 * size, fill="transparent", tip=tip)


def _draw_legend(svg: Svg, page: DecodePage, colours: Colours) -> None:
    room = WIDTH - LEGEND_AT - 40
    for place, flow in enumerate(page.flows):
        y = TOP + 8 + LEGEND_ROW * place
        place_mark(svg, LEGEND_AT + 8, y, place, fill=colours[flow_role(place)], size=13)
        name = shorten(flow, room, size=13)
        svg.text(LEGEND_AT + 26, y, name, size=13, anchor="start", fill=colours["ink"])
    y = TOP + 24 + LEGEND_ROW * len(page.flows)
    svg.line([(LEGEND_AT, y - 20), (WIDTH - 24, y - 20)], stroke=colours["grid"], width=1)
    for place, context in enumerate(page.contexts):
        size = LEAST_MARK + MORE_MARK * place
        place_mark(svg, LEGEND_AT + 8, y, 0, fill=colours["pale"], size=size)
        text = f"{context_text(context)} tokens"
        svg.text(LEGEND_AT + 26, y, text, size=13, anchor="start", fill=colours["ink"])
        y += LEGEND_ROW
