from tilewright.bench.collectives.cases import CollectivesBenchSpec, Series
from tilewright.bench.collectives.speed import run_collectives_bench
from tilewright.report.collectives_plot import draw_collectives


def test_every_row_has_a_bar_and_its_time_on_paper() -> None:
    spec = CollectivesBenchSpec((Series.ALPHA_BETA,), alpha_beta_bytes=(4096,))
    record = run_collectives_bench(spec, progress=lambda _: None)
    text = draw_collectives(record)
    assert text.count("busiest: ") == len(record.rows) == text.count("<title>alpha-beta")
    assert all(row.topology in text for row in record.rows)
    assert draw_collectives(record) == text
