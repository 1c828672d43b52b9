"""Quality over bytes or time: what is drawn, and where."""

from pathlib import Path
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.drawn import size, texts, tipped, tips
from tests.report.quality.records import compare_record, quality_row
from tilewright.records.attention.compare import QualityRow
from tilewright.report.quality.plot import (
    PANEL_HEIGHT,
    PANEL_WIDTH,
    draw_quality,
    write_quality_plot,
)

LATENCIES = st.one_of(st.none(), st.integers(1, 10**9))


def timed(machine: str, flow: str, budget: int, latency_ps: int | None, mass: float) -> QualityRow:
    return quality_row(
        flow, budget, mass=mass, machine=machine, latency_ps=latency_ps, dense_latency_ps=9_000_000,
        latency_selection=None if latency_ps is None else "recorded",
        latency_missing="no kernels" if latency_ps is None else None,
    )  # fmt: skip


def test_every_machine_has_a_panel_with_its_own_dense_line() -> None:
    rows = [timed(name, "quest", 4, 3_000_000, 0.5) for name in ("big", "small")]
    drawn = draw_quality(compare_record(*rows))
    found = [*texts(drawn), *tips(drawn)]
    for name in ("big", "small"):
        assert f"attention mass on {name} (front dashed)" in found
    assert found.count("dense attention: 9") == 2
    assert found.count("quest, 4 pages: 0.500 at 3 us") == 2
    assert found.count("time of one layer's attention for one token, in us") == 2


def test_without_machines_quality_is_drawn_over_bytes() -> None:
    drawn = draw_quality(compare_record(quality_row("quest", 4)))
    assert "quest, 4 pages: 0.500 at 0.25 of its bytes" in tips(drawn)
    assert "dense" not in texts(drawn)


def test_points_fill_their_panel_and_say_how_many_pages_they_are_of() -> None:
    """Costs that differ much are apart, and the axis of mass ends near the masses."""
    rows = [
        quality_row("quest", budget, mass=0.8 + budget / 1000, mass_ci=None, bytes=budget)
        for budget in (10, 100)
    ]
    drawn = draw_quality(compare_record(*rows))
    assert {"10", "100"} <= set(texts(drawn))
    (left, low), (right, high) = (shape.middle for _, shape in tipped(drawn))
    assert right - left > 0.7 * PANEL_WIDTH
    assert low - high > 0.7 * PANEL_HEIGHT


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(LATENCIES, st.floats(0, 1), st.booleans()), min_size=1, max_size=6))
def test_each_row_with_a_time_is_a_point_inside_its_panel(
    points: list[tuple[int | None, float, bool]],
) -> None:
    rows = [
        timed("big", "quest", budget, latency_ps, mass).model_copy(
            update={"is_pareto": is_pareto and latency_ps is not None}
        )
        for budget, (latency_ps, mass, is_pareto) in enumerate(points, start=2)
    ]
    drawn = draw_quality(compare_record(*rows))
    marks = [shape for tip, shape in tipped(drawn) if tip.startswith("quest, ")]
    assert len(marks) == sum(row.latency_ps is not None for row in rows)
    rings = [tip for tip in tips(drawn) if tip.startswith("on the front: ")]
    assert len(rings) == sum(row.is_pareto for row in rows)
    width, height = size(drawn)
    for mark in marks:
        assert 0 <= mark.left <= mark.right <= width
        assert 0 <= mark.middle[1] <= height


def test_a_page_has_picture_and_table_and_escapes_names(tmp_path: Path) -> None:
    flow = "<script>a & b</script>"
    path = tmp_path / "page.html"
    write_quality_plot(path, compare_record(quality_row(flow, 4)))
    text = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert flow in (root.findtext("body/main/pre") or "")
    assert len(list(root.iter("{http://www.w3.org/2000/svg}svg"))) == 1
    assert "<script" not in text
    assert "var(--ink)" in text  # the picture becomes dark with the page
