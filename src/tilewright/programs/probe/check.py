"""What must hold between the rows of a probe, on every machine."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tilewright.records import ProbeRow

CHECKS = (
    "no row is faster than its bound",
    "nothing is used for more than all of the time",
    "the parts of each row add up to its latency",
    "one issuer never takes less time for more bytes",
    "one issuer is never slower near than far, unless refresh met it",
)

# At one size, the first is never slower than the second unless it met a refresh: then the second
# may have been luckier. Cases with several issuers have no such order: one may find a row open that
# another one opened, and so end earlier than it would alone.
ORDERS = (
    ("host_write_near", "host_write_far"),
    ("host_read_near", "host_read_far"),
    ("pe_local", "pe_same_cube"),
    ("pe_local", "pe_next_cube"),
    ("pe_next_cube", "pe_far_cube"),
    ("pe_local", "pe_other_sip"),
)


def failures_of(rows: Sequence[ProbeRow]) -> tuple[str, ...]:
    """One sentence for each check that does not hold."""
    return (*_below_bound(rows), *_wrong_sum(rows), *_not_growing(rows), *_out_of_order(rows))


def _below_bound(rows: Sequence[ProbeRow]) -> Iterator[str]:
    for row in rows:
        least_ps = row.latency_ps if row.phases is None else row.phases.min_ps
        if least_ps < row.bound_ps:
            yield f"{_name(row)}: {least_ps} ps is below its bound of {row.bound_ps} ps"
        if row.utilisation > 1:
            yield f"{_name(row)}: {row.bottleneck} is used for {row.utilisation:.3f} of the time"


def _wrong_sum(rows: Sequence[ProbeRow]) -> Iterator[str]:
    for row in rows:
        total_ps = sum(part_ps for _, part_ps in row.breakdown_ps)
        if total_ps != row.latency_ps:
            yield f"{_name(row)}: its parts are {total_ps} ps and its latency {row.latency_ps} ps"


def _not_growing(rows: Sequence[ProbeRow]) -> Iterator[str]:
    by_case: dict[str, list[ProbeRow]] = {}
    for row in rows:
        if row.issuers == 1:
            by_case.setdefault(row.case, []).append(row)
    for found in by_case.values():
        ordered = sorted(found, key=lambda row: row.bytes)
        for less, more in pairwise(ordered):
            if more.latency_ps < less.latency_ps:
                yield f"{_name(more)} takes {more.latency_ps} ps, less than {_name(less)}"


def _out_of_order(rows: Sequence[ProbeRow]) -> Iterator[str]:
    by_key = {(row.case, row.bytes): row for row in rows}
    for quick, slow in ORDERS:
        for (case, num_bytes), row in by_key.items():
            if case != quick or row.breakdown_ps.refresh:
                continue
            other = by_key.get((slow, num_bytes))
            if other is not None and row.latency_ps > other.latency_ps:
                yield f"{_name(row)} takes {row.latency_ps} ps, more than {_name(other)}"


def _name(row: ProbeRow) -> str:
    return f"{row.case} at {row.bytes} bytes"
