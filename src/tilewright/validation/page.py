"""The page of the documentation that shows every oracle, good rows and bad ones alike."""

from tilewright.records import OracleRow, ValidateRecord
from tilewright.validation.finding import OracleGroup, Rule

RULES = {
    Rule.EXACT: "equal, to the picosecond, the cycle or the count. No tolerance.",
    Rule.BOUND: (
        "a limit that no run may break, on one side. No tolerance; the error is what it is "
        "broken by."
    ),
    Rule.CONFIDENCE: (
        "a random mean, within 4 standard errors. For M/M/1 and M/D/1 the standard error is "
        "`sqrt(v/n)` of the sample-size law, with as many customers as make it 1 % of the expected "
        "value; elsewhere it comes from 20 independent seeds. A standard error above 1 % counts as "
        "1 %, so a small sample cannot buy a wide tolerance. Seeds are the first integers."
    ),
    Rule.RAMP: "within 1 % of a limit, after the start has been left out.",
    Rule.BAND: (
        "between the two ends that the law states for 40,000 cycles of random injection: the "
        "busiest link 0.88 to 0.94 busy at 0.9 of the limit, the last delivery at 1.08 to 1.14 of "
        "the injection time at 1.1. The middle stands as expected, half the width as tolerance."
    ),
    Rule.MODEL: (
        "within 5 % of a second model of the same load. Of networks that is the flit-by-flit model "
        "with the same packets and buffers; that the two agree on every delivery is a row of its "
        "own, and exact. Of collectives it is the walk of the plan."
    ),
    Rule.PRINTED: "equal to a published figure as far as it is printed: half of its last digit.",
}

GROUPS = {
    OracleGroup.QUEUES: (
        "Waiting times of queueing theory, in mean service times. An engine's server is the queue. "
        "The first 2,000 customers are left out, since the queue starts empty."
    ),
    OracleGroup.NOC: (
        "A square mesh with XY routing. Idle paths and counted routes are exact. Saturation is "
        "looked at three times: by counting the packets on the busiest link; with random injection "
        "and unbounded queues, below and above the limit; and with buffers of 16 flits and "
        "credits, where each pair sends equally often, so that the limit binds every run exactly. "
        "Finite buffers saturate earlier, so those rows lie below their limit."
    ),
    OracleGroup.HBM: (
        "One pseudo-channel, or a whole stack, behind an engine's route. HBM4 is the memory of "
        "`ahbm`, HBM3 that of the preset `hbm3`; the expected figures are worked out from the "
        "standards' parameters and read from neither. The loss by refresh, (RTP + RP + RFC + RCD) "
        "/ REFI, is that of one open row. A stream over all banks has to open several of them "
        "again, and pays RRD and now and then RAS for it: it loses more, never less, the more so "
        "on HBM3, where it rotates over four bank groups."
    ),
    OracleGroup.MEMORY: (
        "Accesses of one PE of `ahbm-small`. A command is issued every 2 ns; a page that the TLB "
        "does not keep is there 50 ns after the issue of the first command that names it, for all "
        "that name it; 1 ns after that, and after its own issue, an access sets out. The ports of "
        "a TCM have 512 GB/s, an SRAM has 128 GB/s."
    ),
    OracleGroup.LINKS: (
        "Rates of PCIe and UCIe as closed forms, as streams over one link, and inside the default "
        "machine (its memory without refresh, since links are looked at); chains of links; and "
        "both directions at once."
    ),
    OracleGroup.GEMM: (
        "Published cycles of an output-stationary systolic array, in the convention of those "
        "tables (the index of the last cycle, counted from 0); random shapes on both laws beside "
        "models that step through every multiply-add; and tiles in a pipeline."
    ),
    OracleGroup.ROOFLINE: (
        "The floor of a run is the larger of its operations over the peak and its bytes over the "
        "bandwidth. Runs are tiled products and streams of one PE of the default machine on its "
        "slice of the memory; tests hold every ready program to its own floor."
    ),
    OracleGroup.COLLECTIVES: (
        "Plans of collectives, those of `tilewright run allreduce` and some of textbooks, on wires "
        "of an engine. On idle wires a message of n bytes takes alpha + n beta, and its sum n "
        "gamma more, to the picosecond: alpha is the latency of a wire, beta one over its rate. "
        "The published examples have 8 ranks, 1 MiB, alpha 1 us, 50 GB/s and no gamma. Bounds are "
        "in S/B, the time of a buffer on one wire: counted on the wires of the network, then held "
        "against every algorithm of the table; the row shows the run that comes nearest. Rows on "
        "`ahbm-small` run whole collectives there, without refresh: programs, rings, memories and "
        "links. What grows with the bytes is exact, from rates of the data sheet; whole times are "
        "held against the walk of a plan with alpha, beta and gamma of the spec, and bounds are "
        "counted on the links between SIPs. CO3, CO5, CO6 and CO9 are of algorithms that machines "
        "do not have, or of crossovers, and stay on wires."
    ),
    OracleGroup.ADVICE: (
        "Advice of `explain`: changes of one field of the machine file. A single change doubles "
        "one rate or halves one latency. All single changes of a run are made: none of the changed "
        "runs may be shorter than the latency that advice says no run is, and the first advice has "
        "to gain at least half of what the best single change gains. Here machines have no "
        "refresh, so that one run of each is enough; `validate --all` also runs seven programs on "
        "`ahbm` and `ahbm-small` as they are, where a gain is of means over refresh phases. What "
        "an all-reduce owes to the latency of links between SIPs is counted by hand: two passes of "
        "two links."
    ),
    OracleGroup.CONSERVATION: (
        "Rules that every run obeys, counted from traces of a crowded mesh (two virtual channels, "
        "four kinds of buffers, three seeds each). Each rule is also shown runs with one defect, "
        "seeded at random or put into the engine's counters, and has to find every one. Public "
        "failures of tt-npe are replayed."
    ),
    OracleGroup.ADDRESSES: (
        "What an address of a kernel means, for each PE that may use it. Which PE has which bytes "
        "is worked out again with NumPy from the definition of the policy, for placements drawn at "
        "random; the machine has to allow exactly those accesses and to refuse every other one."
    ),
    OracleGroup.TRITON: (
        "Numbers in Triton kernels: which dtype a variable, a literal, an index of a loop or a "
        "result of a call has, and what operators make of it. Triton's front end compiles each "
        "kernel to its IR, which a small evaluator in NumPy runs; our values have to be the same, "
        "bit for bit, on blocks of each dtype. Triton's interpreter is no oracle here: it keeps "
        "indices of loops as Python's numbers."
    ),
    OracleGroup.VORTEX: (
        "What flows written for Vortex compute there. Each flow is a file as its author wrote it; "
        "the pages that it selects are held against a form in NumPy. State over decode steps is "
        "held against the recurrence in NumPy and float64: a row that fits its budget keeps its "
        "state, one that selects advances all blocks but the reserved last ones. Rows cross from "
        "one to the other, and blocks become complete. A row differs if any of its blocks is off "
        "by more than 1e-5 of the largest."
    ),
    OracleGroup.KERNBENCH: (
        "Programs written for KernBench, run as they are: each is a file that imports `kernbench`, "
        "with its `ccl.yaml` and topology beside it. What it computes is worked out again with "
        "NumPy in float64, from the program's inputs. Found is the greatest error of an element "
        "relative to the norm of its row; the limit is that of the result's dtype."
    ),
    OracleGroup.PHASES: (
        "Latencies of short runs depend on where refresh falls. A read of one burst of HBM4 has a "
        "closed form for each phase: it waits for the rest of a refresh, or loses the row that it "
        "has just opened. Half-widths are held against NumPy, quantiles of Student's t against an "
        "integral of its density. A launch on one PE is as fast as without refresh at its best "
        "phase, and waits for nearly a whole refresh at its worst."
    ),
    OracleGroup.BOUNDS: (
        "Lower bounds of runs: latencies that no schedule avoids, and work over rates. On two SIPs "
        "of one cube whose network is a crossbar, they are worked out by hand from the latencies "
        "and rates of the data sheet: a command from the host to a PE and back, a load that walks "
        "the page table and opens a row, a store, the way through the switch. Then ready programs "
        "and collectives on `ahbm-small` are held against their bounds, at the refresh phase at "
        "which they are fastest; a property test does so on random machines."
    ),
}

HEADING = """# Validation

This page is written by `tilewright validate --markdown docs/validation.md`, and a test fails when
it is stale. It shows every oracle that the command runs: a result that is known without our
simulator, beside what our engine makes of it. The compiled core writes the page; that both engines
agree bit for bit is tested elsewhere. Nothing is left out: a row that fails stays here and says
**FAILS**.

What is claimed is the error against closed forms, not against silicon. `error` and `tolerance` are
in the unit of the row; a row holds if the error is at most the tolerance.

## Where tolerances come from

None is tuned. Each belongs to a rule:

| rule | meaning |
| --- | --- |
"""


def validation_page(record: ValidateRecord) -> str:
    """Markdown, the same for the same figures whatever machine made them."""
    rules = "".join(f"| {rule.value} | {text} |\n" for rule, text in RULES.items())
    held = sum(row.ok for row in record.oracles)
    summary = f"\n**{held} of {len(record.oracles)} oracles hold.**\n"
    groups = "".join(_section(group, record) for group in OracleGroup)
    return HEADING + rules + summary + groups


def _section(group: OracleGroup, record: ValidateRecord) -> str:
    rows = [row for row in record.oracles if row.group == group.value]
    if not rows:
        return ""
    lines = "".join(map(_line, rows))
    table = "| oracle | expected | found | unit | error | tolerance | rule | verdict |\n"
    table += "| --- | ---: | ---: | --- | ---: | ---: | --- | --- |\n"
    return f"\n## {group.value}\n\n{GROUPS[group]}\n\n{table}{lines}"


def _line(row: OracleRow) -> str:
    numbers = [figure(value) for value in (row.expected, row.found)]
    limits = [figure(value, digits=3) for value in (row.error, row.tolerance)]
    verdict = "holds" if row.ok else "**FAILS**"
    cells = (row.name, *numbers, row.unit, *limits, row.rule, verdict)
    return f"| {' | '.join(cells)} |\n"


def figure(value: float, digits: int = 5) -> str:
    """Whole numbers as they are, others to some digits.

    >>> figure(139199), figure(1747.361234), figure(0.0)
    ('139199', '1747.4', '0')
    """
    return str(value) if isinstance(value, int) else f"{value:.{digits}g}"
