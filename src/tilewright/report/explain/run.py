"""The parts of the path that are worth a word, and what sets their time."""

from collections.abc import Callable, Iterator

from tilewright.analysis.advice.build import advise
from tilewright.records import RunRecord
from tilewright.records.explain import ExplainRecord, PartShare, Remark
from tilewright.report.explain.memory import explain_memory
from tilewright.report.format import PART_WORDS
from tilewright.units import format_bytes, format_ps, share_text

# By part: what sets its time. Names in braces are fields of the machine.
_LEVERS = {
    "issue": "larger blocks need fewer commands; {pe.cpu.command_ps} is a command's time",
    "translation": "fewer pages, larger ones ({pe.mmu.page_bytes}) or a larger TLB"
    " ({pe.mmu.tlb_entries}) need fewer walks",
    "link_queueing": "traffic that takes other links, or closer data, queues less",
    "tcm_port": "values that stay in registers are not read again;"
    " {pe.tcm.read_bytes_per_us} is the port's rate",
    "gemm": "{pe.gemm.rows}, {pe.gemm.columns} and {pe.gemm.hz} set its rate",
    "vector": "{pe.vector.lanes} and {pe.vector.hz} set its rate",
    "message": "smaller messages or nearer neighbours take less",
    "message_wait": "the program waits for what other PEs have to send first",
    "host_transfer": "tensors that stay on the device are not copied again",
}


def explain_parts(record: RunRecord) -> Iterator[Remark]:
    """The parts that are worth it, the greatest first; memory has its own rules."""
    parts = sorted(record.breakdown_ps.by_name().items(), key=lambda part: -part[1])
    for name, part_ps in parts:
        share, words = part_ps / record.latency_ps, PART_WORDS[name]
        if share < WORTH_TELLING or name not in _LEVERS:
            continue
        text = (
            f"{words[0].upper()}{words[1:]}: {format_ps(part_ps)}, {share_text(share)}; "
            f"{_with_values(_LEVERS[name], record)}."
        )
        yield Remark(topic=name, text=text)


def _with_values(text: str, record: RunRecord) -> str:
    """Fields with their values; a field that the machine does not have stays a name."""
    for name, value in record.machine.fields.items():
        text = text.replace("{" + name + "}", f"{name} ({value})")
    return text.replace("{", "").replace("}", "")


CLOSE_RATIO = 1.1
WORTH_TELLING = 0.05
GROWTH = 8  # times the work of a launch

# What does not get less when more PEs share the work.
FIXED_PARTS = (
    "dispatch", "issue", "translation", "message", "message_wait", "completion", "host_transfer",
)  # fmt: skip


def explain_run(record: RunRecord, source: str) -> ExplainRecord:
    """``source`` is the record's file, as it was named."""
    total_ps = record.latency_ps
    parts = sorted(record.breakdown_ps.by_name().items(), key=lambda part: -part[1])
    rules = (_trust, *(RULES_OF_TIME if total_ps else ()), _counters)
    return ExplainRecord.of(
        record,
        source=source,
        program=record.what.program,
        machine=record.machine.name,
        parts=tuple(
            PartShare(part=name, time_ps=part_ps, share=part_ps / total_ps)
            for name, part_ps in parts
            if part_ps
        ),
        remarks=tuple(remark for rule in rules for remark in rule(record)),
        advice=advise(record),
        notes=tuple(_why_no_advice(record)),
    )


def _why_no_advice(record: RunRecord) -> Iterator[str]:
    if not record.latency_ps:
        return
    if record.machine.is_own:
        yield "no changes to run with: the program describes its machine, --set does not reach it"
    elif record.path is None:
        yield "no changes to run with: the record has no critical path; run it without --once"


def _trust(record: RunRecord) -> Iterator[Remark]:
    if record.status == "interrupted":
        text = "The run was interrupted: this is what had completed by then."
        yield Remark(topic="interrupted", text=text)
    if record.values_ok is False:
        text = "The values are wrong, so the time is that of another computation than was meant."
        yield Remark(topic="values", text=text)
    for failure in record.failures:
        yield Remark(topic="check", text=f"A check failed: {failure}.")


def _bottleneck(record: RunRecord) -> Iterator[Remark]:
    yield Remark(topic="bottleneck", text=f"Bottleneck: {record.bottleneck}.")


def _bound(record: RunRecord) -> Iterator[Remark]:
    if record.bound_ps is None or record.ratio is None:
        return
    gain = 1 - 1 / record.ratio if record.ratio > 1 else 0.0
    least = f"the lower bound, {format_ps(record.bound_ps)} of {record.bound_resource}"
    text = f"The latency is {record.ratio:.2f} times {least}: "
    if record.ratio < CLOSE_RATIO:
        text += f"on this machine at most {share_text(gain)} can be gained."
    elif record.bound_resource == "latency":
        text += f"{share_text(gain)} of it is more than every schedule needs."
    else:
        text += f"{share_text(gain)} of it is not needed for that resource's work."
    yield Remark(topic="bound", text=text)
    others = {name: ps for name, ps in record.bounds_ps.items() if name != record.bound_resource}
    rate_ps = record.bound_ps - (record.bound_latency_ps or 0)
    if others and rate_ps:
        second = max(others, key=lambda name: others[name])
        faster_ps = record.bound_ps - rate_ps + rate_ps // 2
        bound_ps = max(others[second], faster_ps)
        then = second if others[second] >= faster_ps else record.bound_resource
        text = f"Twice the rate of {record.bound_resource} would lower the bound to"
        yield Remark(topic="bound", text=f"{text} {format_ps(bound_ps)}, then of {then}.")


def _lines(record: RunRecord) -> Iterator[Remark]:
    if not record.lines_ps:
        return
    name, time_ps = max(record.lines_ps.items(), key=lambda line: line[1])
    text = f"Of all lines of its kernels, {name} has the most of the path: {format_ps(time_ps)},"
    share = share_text(time_ps / record.latency_ps)
    yield Remark(topic="line", text=f"{text} {share}, work and waiting together.")


def _overhead(record: RunRecord) -> Iterator[Remark]:
    parts = record.breakdown_ps
    fixed_ps = parts.dispatch + parts.completion
    share = fixed_ps / record.latency_ps
    if share < WORTH_TELLING:
        return
    grown_ps = fixed_ps + GROWTH * (record.latency_ps - fixed_ps)
    text = (
        f"Dispatch and completion take {format_ps(fixed_ps)}, {share_text(share)}, whatever the "
        f"kernel does: with {GROWTH} times the work in a launch it would be "
        f"{share_text(fixed_ps / grown_ps)}."
    )
    yield Remark(topic="overhead", text=text)


def _scaling(record: RunRecord) -> Iterator[Remark]:
    num_pes, all_pes = record.num_pes, record.machine.figures.num_pes
    if not num_pes:
        return
    if 2 * num_pes > all_pes:
        text = f"It uses {num_pes} of {all_pes} PEs: there are not twice as many."
        yield Remark(topic="scaling", text=text)
        return
    parts = record.breakdown_ps.by_name()
    fixed_ps = sum(parts[name] for name in FIXED_PARTS)
    halved_ps = fixed_ps + (record.latency_ps - fixed_ps) // 2
    text = (
        f"It uses {num_pes} of {all_pes} PEs. Twice as many, if the work divides evenly and "
        f"nothing is shared, would take about {format_ps(halved_ps)}, "
        f"{record.latency_ps / halved_ps:.2f} times as fast: {format_ps(fixed_ps)} stay."
    )
    yield Remark(topic="scaling", text=text)


def _skew(record: RunRecord) -> Iterator[Remark]:
    skew_ps = sum(row.skew_ps for row in record.launches if row.is_measured)
    share = skew_ps / record.latency_ps
    if share >= WORTH_TELLING:
        text = f"PEs start {format_ps(skew_ps)} apart, {share_text(share)} of the time."
        yield Remark(topic="skew", text=text)


def _counters(record: RunRecord) -> Iterator[Remark]:
    gathers, spilled = record.counters.get("gathers", 0), record.counters.get("spilled_bytes", 0)
    if gathers:
        text = f"{gathers} accesses had to wait for addresses that were loaded or computed."
        yield Remark(topic="gathers", text=text)
    if spilled:
        text = f"{format_bytes(spilled)} did not fit the registers: smaller blocks would not spill."
        yield Remark(topic="spilling", text=text)


RULES_OF_TIME: tuple[Callable[[RunRecord], Iterator[Remark]], ...] = (
    _bottleneck, _bound, explain_memory, explain_parts, _lines, _overhead, _scaling, _skew,
)  # fmt: skip
"""What a run that took time is asked, in the order of the remarks."""
