"""Colours, marks and the style sheet of a page of decode steps, for light and dark screens.

Pictures name colours by role. On a page a role is a variable of the style sheet, which a dark
screen sets anew; in a file of its own a picture has the light colours, on white.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tilewright.report.svg import Svg

__all__ = (
    "LIGHT_COLOURS",
    "STYLE_SHEET",
    "Colours",
    "flow_role",
    "heat_role",
    "page_colours",
    "place_mark",
    "stage_role",
)

Colours = Mapping[str, str]
"""What a role looks like: a colour, or a variable that holds one."""

HEAT_LEVELS = 5  # beside "idle"
NUM_FLOW_ROLES = 6
NUM_STAGE_ROLES = 7

_LIGHT = {
    "ground": "#ffffff",
    "card": "#f8fafc",
    "ink": "#0f172a",
    "pale": "#475569",
    "line": "#cbd5e1",
    "grid": "#e2e8f0",
    "accent": "#1d4ed8",
    "flow-0": "#475569",
    "flow-1": "#1d4ed8",
    "flow-2": "#0f766e",
    "flow-3": "#c2410c",
    "flow-4": "#7e22ce",
    "flow-5": "#a16207",
    "stage-0": "#1d4ed8",
    "stage-1": "#ea580c",
    "stage-2": "#0d9488",
    "stage-3": "#9333ea",
    "stage-4": "#ca8a04",
    "stage-5": "#db2777",
    "stage-6": "#94a3b8",
    "heat-0": "#cbd5e1",
    "heat-1": "#fde68a",
    "heat-2": "#fbbf24",
    "heat-3": "#f97316",
    "heat-4": "#dc2626",
    "heat-5": "#7f1d1d",
}
_DARK = {
    "ground": "#0b1120",
    "card": "#131c31",
    "ink": "#f1f5f9",
    "pale": "#a9b6c9",
    "line": "#3b4a63",
    "grid": "#243049",
    "accent": "#93c5fd",
    "flow-0": "#cbd5e1",
    "flow-1": "#60a5fa",
    "flow-2": "#2dd4bf",
    "flow-3": "#fb923c",
    "flow-4": "#c084fc",
    "flow-5": "#facc15",
    "stage-0": "#60a5fa",
    "stage-1": "#fb923c",
    "stage-2": "#2dd4bf",
    "stage-3": "#c084fc",
    "stage-4": "#facc15",
    "stage-5": "#f472b6",
    "stage-6": "#64748b",
    "heat-0": "#3b4a63",
    "heat-1": "#7c5a10",
    "heat-2": "#c27c0e",
    "heat-3": "#f97316",
    "heat-4": "#f87171",
    "heat-5": "#fecaca",
}

LIGHT_COLOURS: Colours = MappingProxyType(_LIGHT)


def page_colours() -> Colours:
    """Variables of ``STYLE_SHEET``."""
    return MappingProxyType({role: f"var(--{role})" for role in _LIGHT})


def flow_role(place: int) -> str:
    """Of the flow at this place; the first one is dense."""
    return f"flow-{place % NUM_FLOW_ROLES}"


def stage_role(place: int) -> str:
    return f"stage-{place % NUM_STAGE_ROLES}"


def heat_role(share: float) -> str:
    """Idle is a level of its own.

    >>> heat_role(0.0), heat_role(0.01), heat_role(0.2), heat_role(0.21), heat_role(1.0)
    ('heat-0', 'heat-1', 'heat-1', 'heat-2', 'heat-5')
    """
    level = next((n for n in range(HEAT_LEVELS) if share <= n / HEAT_LEVELS), HEAT_LEVELS)
    return f"heat-{level}"


def place_mark(svg: Svg, x: float, y: float, place: int, *, fill: str, size: float) -> None:
    """A shape for each place, so that nobody has to tell colours apart."""
    half = size / 2
    match place % 4:
        case 0:
            svg.rect(x - half, y - half, size, size, fill=fill, radius=half)
        case 1:
            svg.rect(x - 0.9 * half, y - 0.9 * half, 0.9 * size, 0.9 * size, fill=fill, radius=1)
        case 2:
            tall = 1.2 * half
            svg.polygon(((x, y - tall), (x + tall, y), (x, y + tall), (x - tall, y)), fill=fill)
        case _:
            low, wide = y + 0.9 * half, 1.15 * half
            svg.polygon(((x, y - 1.1 * half), (x + wide, low), (x - wide, low)), fill=fill)


def _variables(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{role}: {colour};" for role, colour in colours.items())


_RULES: Sequence[str] = (
    f":root {{ color-scheme: light dark; {_variables(_LIGHT)} }}",
    f"@media (prefers-color-scheme: dark) {{ :root {{ {_variables(_DARK)} }} }}",
    """
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: 1.2rem; margin: 0 0 .25rem; }
p { margin: 0 0 .75rem; max-width: 52rem; }
.meaning p { font-size: 1.08rem; }
.note { color: var(--pale); font-size: .9rem; }
.scroll + .note { margin-top: .6rem; }
section { margin-top: 2.5rem; }
figure { margin: .75rem 0; }
svg { display: block; width: 100%; height: auto; }
.card { background: var(--ground); border: 1px solid var(--line); border-radius: .75rem;
  padding: 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
caption { text-align: left; color: var(--pale); padding-bottom: .35rem; }
th, td { padding: .35rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--grid); font-variant-numeric: tabular-nums; }
thead th { color: var(--pale); font-weight: 600; border-bottom: 1px solid var(--line);
  white-space: normal; vertical-align: bottom; }
th:first-child, .words { text-align: left; }
td.words { white-space: normal; min-width: 8rem; }
tr.first td, tr.first th { border-top: 2px solid var(--line); }
code { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: .88rem; }
.commands dt { margin-top: .6rem; }
.commands code { display: inline-block; background: var(--card); border: 1px solid var(--line);
  border-radius: .4rem; padding: .2rem .5rem; overflow-wrap: anywhere; }
.commands dd { margin: .15rem 0 0; color: var(--pale); }
details { margin-top: .75rem; }
summary { cursor: pointer; color: var(--accent); }
@media print { details > * { display: block; } section { break-inside: avoid; } }
""".strip(),
)

STYLE_SHEET = "\n".join(_RULES)
