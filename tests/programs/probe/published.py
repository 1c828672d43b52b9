"""The published DMA figures of KernBench beside ours, as the page ``docs/published-shapes.md``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.engine import AUTO, Auto, EngineKind
from tilewright.machine.build import build_machine
from tilewright.machine.parse import parse_machine
from tilewright.programs.probe.run import run_probe
from tilewright.records import ProbeRow

KIB, MIB = 2**10, 2**20
PAYLOAD = 16 * KIB
MEMORY = "cube.hbm.model=simple"  # KernBench's memory has a rate and a latency, and so has this one

Rows = dict[tuple[str, int], ProbeRow]


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the table: theirs is quoted, ours is computed."""

    what: str
    theirs: str
    ours: Callable[[Rows], str]
    why: str


def published_rows(overrides: Sequence[str] = (), choice: EngineKind | Auto = AUTO) -> Rows:
    """Our rows by case and size, on ``ahbm`` with the simple memory."""
    machine = build_machine(parse_machine("ahbm", (MEMORY, *overrides)))
    found: list[ProbeRow] = []
    for names, sizes in _LOADS:
        found += run_probe(machine, names=names, sizes=sizes, choice=choice).cases
    return {(row.case, row.bytes): row for row in found}


def published_page(rows: Rows) -> str:
    """The whole page in Markdown."""
    lines = [f"| {line.what} | {line.theirs} | {line.ours(rows)} | {line.why} |" for line in _LINES]
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


_LOADS = (
    (("pe_local", "pe_far_cube", "pe_other_sip"), (PAYLOAD,)),
    (("hot_1", "hot_2", "hot_3", "hot_8", "east_port_8"), (PAYLOAD,)),
    (("local_all", "slice_all"), (PAYLOAD,)),
    (("host_write_near",), (64 * KIB, MIB)),
)


def _time(case: str, num_bytes: int = PAYLOAD) -> Callable[[Rows], str]:
    return lambda rows: f"{_ns(rows[case, num_bytes])} ns"


def _ns(row: ProbeRow) -> str:
    return f"{row.latency_ps / 1000:.0f}"


def _hot(rows: Rows) -> str:
    return " / ".join(_ns(rows[f"hot_{count}", PAYLOAD]) for count in (1, 2, 3)) + " ns"


def _hosts(rows: Rows) -> str:
    return " / ".join(_ns(rows["host_write_near", size]) for size in (64 * KIB, MIB)) + " ns"


def _local(rows: Rows) -> str:
    row = rows["local_all", PAYLOAD]
    share = row.bandwidth_gbs / row.refresh_limited_gbs
    return f"{row.bandwidth_gbs / 1000:.1f} TB/s, {100 * share:.0f} %"


def _slice(rows: Rows) -> str:
    row = rows["slice_all", PAYLOAD]
    return f"{row.bandwidth_gbs:.0f} GB/s, {100 * row.utilisation:.0f} % of its bottleneck"


_HEAD = """# Published shapes

KernBench published DMA figures of a machine with the counts of `ahbm`. We reproduce their order,
ratios and slopes, not the numbers: latencies that they leave open are ours.
`tests/programs/probe/published.py` computes this page, and a test compares them; all times are
simulated, on `ahbm` with `cube.hbm.model=simple`, 16 KiB per issuer unless the line says otherwise.

| case | KernBench | tilewright | what it shows, and why ours differs |
| --- | --- | --- | --- |
"""

_LINES = (
    _Line(
        "own slice",
        "77 ns",
        _time("pe_local"),
        "64 ns of data at 256 GB/s and 8 ns of latency in both; ours counts the first chunk of a "
        "pseudo-channel and the way out and back",
    ),
    _Line(
        "farthest cube",
        "573 ns",
        _time("pe_far_cube"),
        "six die-to-die crossings each way; a port at 128 GB/s takes 128 ns for the data",
    ),
    _Line(
        "other SIP",
        "409 ns",
        _time("pe_other_sip"),
        "ours has two cables of 200 ns and a switch of 100 ns each way, 1000 ns in all; without "
        "them it is nearer than the farthest cube, as theirs is",
    ),
    _Line(
        "one controller, 1 / 2 / 3 issuers",
        "82 / 158 / 230 ns",
        _hot,
        "one after the other at the controller: each further issuer costs them about 74 ns and "
        "us the 64 ns of its data, less the head start of a nearer PE",
    ),
    _Line(
        "8 PEs, one controller",
        "558 ns",
        _time("hot_8"),
        "the same line goes on: 8 x 64 ns of data and one way",
    ),
    _Line(
        "8 PEs write to the east neighbour",
        "963 ns",
        _time("east_port_8"),
        "theirs sends 7 of 8 flows over one connection; ours spreads them over four, 256 ns of "
        "data; with one connection a port ours has their shape",
    ),
    _Line(
        "128 PEs, own slices",
        "27.2 TB/s, 83 %",
        _local,
        "all slices at the same time, each exactly as fast as alone",
    ),
    _Line(
        "128 PEs, one slice",
        "134 GB/s, 93 % of its bottleneck",
        _slice,
        "everybody waits at one controller, and it is never idle; their reference rate of about "
        "144 GB/s is not explained",
    ),
    _Line(
        "host writes 64 KiB / 1 MiB",
        "545 / 8230 ns",
        _hosts,
        "one stream time, not a sum over hops: from the first size to the second theirs goes on "
        "at 128 GB/s and ours at the payload rate of PCIe 5.0 x16, 57.6 GB/s",
    ),
)

_TAIL = """
Across SIPs KernBench tolerates times that nothing explains. Here the parts of every row add up to
its latency; `tilewright probe` shows them.
"""
