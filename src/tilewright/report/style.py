"""Colours, marks and letters of pages and plots, and pages from their templates.

Pictures are drawn in the light colours. On a page ``themed`` names a variable instead of each,
which the page's style sheet sets for light and for dark screens. Jinja escapes whatever a page is
given, but for pictures, which are markup already.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.records import write_file
from tilewright.report.svg import INK

LEGEND_SIZE = 14.0
HEAT_LEVELS = 5  # beside "idle"
NUM_FLOW_ROLES = 9
NUM_STAGE_ROLES = 7
MARKS = "osD^vPXp"

_PALETTE = {  # by role, on light and on dark screens
    "ground": ("#ffffff", "#0b1120"),
    "card": ("#f8fafc", "#131c31"),
    "ink": (INK, "#f1f5f9"),
    "pale": ("#475569", "#a9b6c9"),
    "line": ("#cbd5e1", "#3b4a63"),
    "grid": ("#e2e8f0", "#243049"),
    "accent": ("#1e40af", "#93c5fd"),
    "flow-0": ("#4b5563", "#cbd5e1"),
    "flow-1": ("#1d4ed8", "#60a5fa"),
    "flow-2": ("#0f766e", "#2dd4bf"),
    "flow-3": ("#c2410c", "#fb923c"),
    "flow-4": ("#7e22ce", "#c084fc"),
    "flow-5": ("#a16207", "#facc15"),
    "flow-6": ("#be185d", "#f472b6"),
    "flow-7": ("#0891b2", "#22d3ee"),
    "flow-8": ("#4d7c0f", "#a3e635"),
    "stage-0": ("#1d4fd8", "#60a5fa"),
    "stage-1": ("#ea580c", "#fb923c"),
    "stage-2": ("#0d9488", "#2dd4bf"),
    "stage-3": ("#9333ea", "#c084fc"),
    "stage-4": ("#ca8a04", "#facc15"),
    "stage-5": ("#db2777", "#f472b6"),
    "stage-6": ("#94a3b8", "#64748b"),
    "heat-0": ("#cbd4e1", "#3b4a63"),
    "heat-1": ("#fde68a", "#7c5a10"),
    "heat-2": ("#fbbf24", "#c27c0e"),
    "heat-3": ("#f97316", "#f97316"),
    "heat-4": ("#dc2626", "#f87171"),
    "heat-5": ("#7f1d1d", "#fecaca"),
}
COLOURS: Mapping[str, str] = {role: light for role, (light, _) in _PALETTE.items()}
"""Light colours by role. No two are alike, so that a colour tells its role."""

DARK_COLOURS: Mapping[str, str] = {role: dark for role, (_, dark) in _PALETTE.items()}

PLOT_SHEET: Mapping[str, object] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, copied and read aloud
    "svg.hashsalt": "tilewright",
    "text.parse_math": False,  # a name with a dollar is no formula
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: places are alike on every machine
    "font.size": 13.0,
    "text.color": COLOURS["ink"],
    "figure.facecolor": COLOURS["ground"],
    "axes.facecolor": "none",
    "axes.edgecolor": COLOURS["line"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.labelsize": 13.0,
    "axes.titlesize": 14.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12.0,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": COLOURS["grid"],
    "grid.linewidth": 1.0,
    "xtick.labelcolor": COLOURS["pale"],
    "ytick.labelcolor": COLOURS["pale"],
    "xtick.major.size": 0.0,
    "ytick.major.size": 0.0,
    "xtick.major.pad": 8.0,
    "ytick.major.pad": 8.0,
    "lines.linewidth": 2.0,
    "lines.markersize": 8.0,
    "legend.frameon": False,
    "legend.fontsize": LEGEND_SIZE,
    "legend.borderpad": 0.0,
    "legend.borderaxespad": 0.0,
    "legend.labelspacing": 0.7,
    "legend.handletextpad": 0.6,
}
"""Settings of matplotlib, on top of its own defaults."""

_TAG = re.compile(r"<[^>]*>")
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_ROLES = {colour: role for role, colour in COLOURS.items()}


def themed(drawn: str) -> str:
    """Return the picture in variables of a page's style sheet instead of light colours.

    >>> themed('<path fill="#ffffff"/><text fill="#123456">#ffffff</text>')
    '<path fill="var(--ground)"/><text fill="#123456">#ffffff</text>'
    """
    return _TAG.sub(lambda tag: _COLOUR.sub(_variable, tag[0]), drawn)


def flow_role(index: int) -> str:
    """Return the role of a flow; the first one is dense attention."""
    return f"flow-{index % NUM_FLOW_ROLES}"


def series_role(index: int) -> str:
    """Return the role of one of several lines none of which is dense attention."""
    return f"flow-{1 + index % (NUM_FLOW_ROLES - 1)}"


def series_mark(index: int) -> str:
    """Return a shape in matplotlib's letters, so that nobody has to tell colours apart."""
    return MARKS[(index + index // len(MARKS)) % len(MARKS)]


def stage_role(index: int) -> str:
    return f"stage-{index % NUM_STAGE_ROLES}"


def heat_role(share: float) -> str:
    """Return the role of a share of the time; idle is a level of its own.

    >>> heat_role(0.0), heat_role(0.01), heat_role(0.2), heat_role(0.21), heat_role(1.0)
    ('heat-0', 'heat-1', 'heat-1', 'heat-2', 'heat-5')
    """
    level = next((n for n in range(HEAT_LEVELS) if share <= n / HEAT_LEVELS), HEAT_LEVELS)
    return f"heat-{level}"


def _variable(colour: re.Match[str]) -> str:
    role = _ROLES.get(colour[0])
    return colour[0] if role is None else f"var(--{role})"


def render_page(template: str, **values: Any) -> str:
    """Return HTML that is also well-formed XML; equal values give equal bytes."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # for pages only

    environment = Environment(
        loader=PackageLoader("tilewright.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(light=COLOURS, dark=DARK_COLOURS, **values)


def write_page(path: Path, text: str) -> None:
    """Write a page whole or not at all; an older file is replaced in one step."""
    write_file(path, text.encode(), "page")
