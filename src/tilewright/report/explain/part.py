"""The parts of the path that are worth a word, and what sets their time."""

from collections.abc import Iterator

from tilewright.records import RunRecord
from tilewright.records.explain import Remark
from tilewright.report.run.format import PART_WORDS
from tilewright.units import format_ps, share_text

WORTH_TELLING = 0.05

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
    if not record.latency_ps:
        return
    parts = sorted(record.breakdown_ps.by_name().items(), key=lambda part: -part[1])
    for name, part_ps in parts:
        share = part_ps / record.latency_ps
        if share < WORTH_TELLING or name not in _LEVERS:
            continue
        text = (
            f"{_capital(PART_WORDS[name])}: {format_ps(part_ps)}, {share_text(share)}; "
            f"{_with_values(_LEVERS[name], record)}."
        )
        yield Remark(topic=name, text=text)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _with_values(text: str, record: RunRecord) -> str:
    """Fields with their values; a field that the machine does not have stays a name."""
    for name, value in record.machine.fields.items():
        text = text.replace("{" + name + "}", f"{name} ({value})")
    return text.replace("{", "").replace("}", "")
