"""The page of ready flows says what the flows are."""

from pathlib import Path

import pytest

from tests.attention.flows.catalogue import flow_page
from tilewright.attention.flow.registry import list_keys

PAGE = Path(__file__).parents[3] / "docs" / "flows.md"


@pytest.fixture(scope="module")
def page() -> str:
    return flow_page(list_keys())


def test_the_page_of_flows_is_current(page: str) -> None:
    assert PAGE.read_text() == page, f"write flow_page(list_keys()) to {PAGE}"


def test_every_flow_has_its_row_with_a_rule_and_a_source(page: str) -> None:
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]
    assert sorted(row[0].strip("`") for row in cells) == list_keys()
    assert all(row[1] and row[2] and row[3] and row[6] for row in cells)


def test_bytes_are_those_of_the_fields_and_states() -> None:
    row = next(
        line for line in flow_page(["running_avg_block_sparse"]).splitlines() if "`running" in line
    )
    assert "centroids 1x128; running_score 1x1, state | 258 |" in row
