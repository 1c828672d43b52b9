"""The law of walks on kernels of any order of pages, on both engines."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import every_engine
from tilewright.engine import EngineKind
from tilewright.validation import memory


@every_engine
@settings(max_examples=4)
@given(pages=st.lists(st.integers(0, memory.NUM_PAGES - 1), min_size=1, max_size=40))
def test_loads_set_out_when_the_law_says_whatever_the_order_of_their_pages(
    kind: EngineKind, pages: list[int]
) -> None:
    assert memory.departures_ns(pages, kind) == memory.expected_ns(pages)
