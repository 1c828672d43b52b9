"""Pictures with axes in general: what decides their bytes, what they may say, what they load."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.drawn import texts, tips
from tilewright.errors import RecordError
from tilewright.report.plot import check_plot_path, label_points, open_plot, set_log_scale
from tilewright.report.style import COLOURS, DARK_COLOURS, themed

DRAW = """
import sys
import tests.report.pictures
for text in tests.report.pictures.all_plots():
    sys.stdout.buffer.write(text.encode())
"""
WITHOUT = """
import sys
from tilewright.cli.main import main
try:
    main({arguments!r})
except SystemExit:
    pass
print(sorted({{"matplotlib", "jinja2"}} & set(sys.modules)))
"""
ROOT = Path(__file__).parents[2]


def run(code: str, **environment: str) -> bytes:
    command = (sys.executable, "-W", "error", "-c", code)
    found = subprocess.run(command, capture_output=True, check=False, cwd=ROOT, env=environment)
    assert found.returncode == 0, found.stderr.decode()
    return found.stdout


def test_two_processes_draw_the_same_bytes_whatever_their_hashes_and_settings(
    tmp_path: Path,
) -> None:
    (tmp_path / "matplotlibrc").write_text(
        "lines.linewidth: 9\nfont.size: 30\nsvg.fonttype: path\n"
    )
    first = run(DRAW, PYTHONHASHSEED="1", PYTHONPATH=str(ROOT))
    second = run(DRAW, PYTHONHASHSEED="2", PYTHONPATH=str(ROOT), MPLCONFIGDIR=str(tmp_path))
    assert first == second
    assert first.count(b"</svg>") > 6
    assert first.count(b"</html>") == 1


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["machine", "show"]])
def test_a_command_that_draws_no_plot_and_writes_no_page_loads_neither_library(
    arguments: list[str],
) -> None:
    assert run(WITHOUT.format(arguments=arguments)).splitlines()[-1] == b"[]"


names = st.text(st.characters(codec=None, exclude_characters="\n"), min_size=1, max_size=8)


@given(names)
@settings(max_examples=25)
def test_any_name_can_be_drawn_and_none_is_a_formula(name: str) -> None:
    with open_plot(200, 100, name) as plot:
        axes = plot.axes(10, 10, 80, 80)
        plot.text(10, 10, name)
        plot.mark(axes, 1, 1, "o", COLOURS["ink"], name)
        text = plot.render()
    root = ElementTree.fromstring(text)
    said = root.findtext("{http://www.w3.org/2000/svg}title")
    assert said is not None
    assert len(said) == len(name)


def test_a_name_with_dollars_and_underscores_stays_what_it_is() -> None:
    with open_plot(400, 100, "") as plot:
        axes = plot.axes(10, 10, 80, 80)
        (line,) = axes.plot([1], [1], label="_x")
        plot.legend(100, 10, [(line, "_x$a_b$")], width=200)
        text = plot.render()
    assert "_x$a_b$" in texts(text)


def test_labels_of_points_lie_on_no_other_and_the_first_ones_have_precedence() -> None:
    with open_plot(400, 400, "") as plot:
        axes = plot.axes(50, 50, 300, 300)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        crowd = [(0.5, 0.5, str(index), COLOURS["ink"]) for index in range(10, 20)]
        label_points(axes, [*crowd, (0.1, 0.1, "alone", COLOURS["ink"])])
        found = [text for text in texts(plot.render()) if text in ("alone", *map(str, range(20)))]
    assert found == ["10", "11", "12", "13", "alone"]


@pytest.mark.parametrize("values", [[1], [3, 3.1], [1, 9], [5, 5e6], [1e-3, 1e18]])
def test_a_logarithmic_axis_has_some_ticks_and_not_too_many(values: list[float]) -> None:
    with open_plot(500, 100, "") as plot:
        axes = plot.axes(20, 20, 400, 50)
        axes.set_yticks([])
        set_log_scale(axes, "x", values, lambda value: f"{value:g}")
        ticks = list(map(float, texts(plot.render())))
    assert 2 <= len(ticks) <= 9
    assert all(min(values) / 4 <= tick <= max(values) * 4 for tick in ticks)


def test_colours_tell_their_roles_on_light_and_dark_screens() -> None:
    assert len(set(COLOURS.values())) == len(COLOURS)
    assert COLOURS.keys() == DARK_COLOURS.keys()
    with open_plot(50, 50, "#0f172a") as plot:
        plot.text(10, 10, "#475569", role="pale")
        text = themed(plot.render())
    assert "var(--pale)" in text
    assert texts(text) == ["#475569"]
    assert "<title>#0f172a</title>" in text
    assert tips(text) == []


@pytest.mark.parametrize("name", ["plot.txt", "no/plot.svg", "directory.svg"])
def test_a_path_that_no_plot_can_have_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "directory.svg").mkdir()
    with pytest.raises(RecordError):
        check_plot_path(tmp_path / name)
    check_plot_path(tmp_path / "plot.svg")


def test_all_names_that_a_plot_may_have_are_told(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"a name that ends in \.svg or \.html; rename it"):
        check_plot_path(tmp_path / "plot.png", (".svg", ".html"))
