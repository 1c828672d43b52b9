"""The bar that shows where the time went."""

from hypothesis import given
from hypothesis import strategies as st

from tilewright.cli.command.probe import BAR_LETTERS, bar_of
from tilewright.records import Breakdown

times = st.integers(0, 10**9)
breakdowns = st.builds(
    Breakdown,
    overhead=times,
    wire=times,
    serialisation=times,
    queueing=times,
    memory=times,
    refresh=times,
)


@given(breakdowns)
def test_a_bar_is_full_and_no_part_is_off_by_a_letter(parts: Breakdown) -> None:
    bar = bar_of(parts)
    total_ps = sum(part_ps for _, part_ps in parts)
    assert len(bar) == (BAR_LETTERS if total_ps else 0)
    for name, part_ps in parts:
        if total_ps:
            assert abs(bar.count(name[0]) - BAR_LETTERS * part_ps / total_ps) < 1


@given(breakdowns)
def test_the_parts_of_a_bar_stand_in_the_order_of_the_record(parts: Breakdown) -> None:
    order = [name[0] for name, _ in parts]
    places = [order.index(letter) for letter in bar_of(parts)]
    assert places == sorted(places)
