from tilewright.records.attention_compare import FlowDifference
from tilewright.report.quality_table import order_lines


def difference(budget: int, flow: str, behind: str, *, is_noise: bool) -> FlowDifference:
    return FlowDifference(
        budget=budget,
        flow=flow,
        behind=behind,
        mass_difference=0.1,
        mass_difference_ci=(0.0, 0.2),
        is_noise=is_noise,
    )


def test_each_budget_has_a_line_that_tells_noise_from_order() -> None:
    found = order_lines(
        (
            difference(8, "a", "b", is_noise=False),
            difference(8, "b", "c", is_noise=True),
            difference(16, "c", "a", is_noise=True),
        )
    )
    assert list(found) == ["  8 pages: a > b ~ c", " 16 pages: c ~ a"]
