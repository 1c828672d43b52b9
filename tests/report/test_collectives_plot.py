import pytest

from tests.report.drawn import texts, tipped, tips
from tests.report.pictures import collectives_record
from tilewright.bench.collectives import CollectivesBenchSpec, Series, run_collectives_bench
from tilewright.report.collectives_plot import draw_collectives


def test_every_row_has_its_latency_its_bound_and_its_time_on_paper() -> None:
    spec = CollectivesBenchSpec((Series.ALPHA_BETA,), alpha_beta_bytes=(4096,))
    record = run_collectives_bench(spec, progress=lambda _: None)
    text = draw_collectives(record)
    for words in ("busiest: ", "lower bound", "alpha-beta"):
        assert len([tip for tip in tips(text) if words in tip]) == len(record.rows)
    assert all(any(row.topology in word for word in texts(text)) for row in record.rows)
    assert draw_collectives(record) == text


def test_equal_ratios_of_times_are_equally_far_apart() -> None:
    text = draw_collectives(collectives_record(10**6, 10**7))
    shapes = [shape for tip, shape in tipped(text) if "alpha" not in tip]
    bound, latency, other_bound, other_latency = (shape.middle[0] for shape in shapes)
    assert latency > bound
    assert latency - bound == pytest.approx(other_latency - other_bound, abs=0.1)


def test_without_rows_there_is_a_picture_without_marks() -> None:
    assert tips(draw_collectives(collectives_record())) == []
