from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import UnitError
from tilewright.units import (
    MAX_PS,
    PS_PER_S,
    PS_PER_US,
    clock_edge_ps,
    flit_ps,
    format_bytes,
    format_ps,
    format_rate,
    num_flits,
    parse_bytes,
    parse_ps,
    parse_rate,
    transfer_ps,
    wire_ps,
)

positive = st.integers(1, 10**9)
counts = st.integers(0, 10**9)


@given(flit_bytes=positive, bytes_per_us=positive)
def test_a_flit_is_never_early_and_less_than_a_picosecond_late(
    flit_bytes: int, bytes_per_us: int
) -> None:
    exact_ps = Fraction(flit_bytes * PS_PER_US, bytes_per_us)
    assert 0 <= flit_ps(flit_bytes=flit_bytes, bytes_per_us=bytes_per_us) - exact_ps < 1


@given(num_bytes=counts, flit_bytes=positive)
def test_flits_hold_all_bytes_and_none_is_empty(num_bytes: int, flit_bytes: int) -> None:
    flits = num_flits(num_bytes, flit_bytes=flit_bytes)
    assert (flits - 1) * flit_bytes < num_bytes <= flits * flit_bytes or flits == num_bytes == 0


@given(index=counts, hz=positive)
def test_a_clock_edge_is_the_exact_time_rounded_up_at_any_index(index: int, hz: int) -> None:
    assert 0 <= clock_edge_ps(index, hz=hz) - Fraction(index * PS_PER_S, hz) < 1


@given(parts=st.lists(counts, max_size=5), flit_time_ps=positive)
def test_a_transfer_takes_as_long_as_its_parts(parts: list[int], flit_time_ps: int) -> None:
    whole_ps = transfer_ps(sum(parts), flit_ps=flit_time_ps)
    assert whole_ps == sum(transfer_ps(part, flit_ps=flit_time_ps) for part in parts)


@given(length_um=counts, ps_per_mm=counts)
def test_a_wire_is_never_early_and_less_than_a_picosecond_late(
    length_um: int, ps_per_mm: int
) -> None:
    exact_ps = Fraction(length_um * ps_per_mm, 1_000)
    assert 0 <= wire_ps(length_um, ps_per_mm=ps_per_mm) - exact_ps < 1


WRONG_CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: flit_ps(flit_bytes=0, bytes_per_us=1), "flit_bytes: found 0, expected at least 1"),
    (lambda: flit_ps(flit_bytes=64, bytes_per_us=0), "bytes_per_us: found 0"),
    (lambda: flit_ps(flit_bytes=64, bytes_per_us=-5), "bytes_per_us: found -5"),
    (lambda: flit_ps(flit_bytes=64.0, bytes_per_us=1), "found 64.0 of type float"),  # type: ignore[arg-type]
    (lambda: flit_ps(flit_bytes=True, bytes_per_us=1), "found True of type bool"),
    (lambda: transfer_ps(-1, flit_ps=1), "num_flits: found -1"),
    (lambda: wire_ps(-1, ps_per_mm=10), "length_um: found -1"),
    (lambda: wire_ps(1, ps_per_mm=-10), "ps_per_mm: found -10"),
    (lambda: transfer_ps(1, flit_ps=0), "flit_ps: found 0"),
    (lambda: num_flits(-1, flit_bytes=64), "num_bytes: found -1"),
    (lambda: num_flits(1, flit_bytes=0), "flit_bytes: found 0"),
    (lambda: clock_edge_ps(-1, hz=1), "index: found -1"),
    (lambda: clock_edge_ps(1, hz=0), "hz: found 0"),
    (lambda: format_ps(-1), "time_ps: found -1"),
    (lambda: format_bytes(-1), "num_bytes: found -1"),
    (lambda: format_rate(1, elapsed_ps=0), "elapsed_ps: found 0"),
]


@pytest.mark.parametrize(("call", "message"), WRONG_CALLS)
def test_a_value_that_is_no_sensible_integer_is_refused_by_name(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(UnitError) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "picoseconds"),
    [
        ("0 ps", 0),
        ("12.5 ns", 12_500),
        ("3.9us", 3_900_000),
        (" 1 ms ", 10**9),
        ("2 s", 2 * 10**12),
    ],
)
def test_a_time_is_parsed_exactly(text: str, picoseconds: int) -> None:
    assert parse_ps(text) == picoseconds


@given(st.integers(0, MAX_PS))
def test_every_time_can_be_written_in_picoseconds_and_read_back(time_ps: int) -> None:
    assert parse_ps(f"{time_ps} ps") == time_ps


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.5 ps", "a whole number of ps"),
        ("0.0001 ns", "a whole number of ps"),
        ("12", "a unit"),
        ("ns", "a unit"),
        ("-1 ns", "at least zero"),
        ("1e3 ns", "a unit"),
        ("1_000 ns", "a unit"),
        ("nan ns", "a unit"),
        ("1 fortnight", "one of ps, ns, us, ms, s"),
        ("1 NS", "one of ps, ns, us, ms, s"),
        ("", "a unit"),
        (f"{MAX_PS + 1} ps", f"at most {MAX_PS} ps"),
    ],
)
def test_a_time_that_is_not_exact_is_refused(text: str, expected: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_ps(text, where="hbm.trcd")
    assert caught.value.where == "hbm.trcd"
    assert expected in caught.value.expected


def test_a_bare_number_is_refused_because_it_has_no_unit() -> None:
    with pytest.raises(UnitError, match="found 5, expected a number"):
        parse_ps(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [("64 B", 64), ("64 KiB", 65_536), ("1.5 MiB", 1_572_864), ("1 KB", 1000), ("2GB", 2 * 10**9)],
)
def test_a_size_is_parsed_exactly(text: str, num_bytes: int) -> None:
    assert parse_bytes(text) == num_bytes


@pytest.mark.parametrize("text", ["0.5 B", "1.0001 KB", "1 Kb", "1 kb"])
def test_a_size_that_is_no_whole_number_of_bytes_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "bytes_per_us"),
    [("128 GB/s", 128_000), ("1 MB/s", 1), ("63.015 GB/s", 63_015), ("1000000 B/s", 1)],
)
def test_a_rate_is_parsed_exactly(text: str, bytes_per_us: int) -> None:
    assert parse_rate(text) == bytes_per_us


@pytest.mark.parametrize("text", ["0 GB/s", "1 B/s", "1 GiB/s", "128 GB", "8 Gb/s"])
def test_a_rate_that_is_no_whole_number_of_bytes_per_microsecond_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        parse_rate(text)


@pytest.mark.parametrize(
    ("time_ps", "text"),
    [
        (0, "0 ps"),
        (999, "999 ps"),
        (1000, "1 ns"),
        (100_000, "100 ns"),
        (999_999_999, "1 ms"),
        (MAX_PS, "9223372.037 s"),
    ],
)
def test_a_time_is_shown_in_the_largest_unit_that_fits(time_ps: int, text: str) -> None:
    assert format_ps(time_ps) == text


@given(st.integers(0, MAX_PS))
def test_a_shown_time_is_within_half_of_its_last_digit(time_ps: int) -> None:
    number, unit = format_ps(time_ps).split()
    unit_ps = parse_ps(f"1 {unit}")
    assert abs(Fraction(number) * unit_ps - time_ps) * 2000 <= unit_ps


def test_sizes_and_rates_are_shown_in_their_units() -> None:
    assert format_bytes(0) == "0 B"
    assert format_bytes(1023) == "1023 B"
    assert format_rate(1024, elapsed_ps=4000) == "256 GB/s"
    assert format_rate(0, elapsed_ps=5) == "0 B/s"
