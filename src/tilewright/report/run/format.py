"""The parts of a run and its bottleneck, in words."""

from tilewright.records import Bottleneck
from tilewright.units import share_text

PART_WORDS = {
    "dispatch": "dispatch from the host",
    "issue": "issue by the PE's CPU and scheduler",
    "translation": "address translation",
    "memory_read": "memory reads",
    "memory_write": "memory writes",
    "refresh": "refresh of the memory",
    "link_queueing": "queueing in front of links",
    "tcm_port": "the ports of the TCM",
    "gemm": "the GEMM unit",
    "vector": "the vector unit",
    "message": "messages on their way",
    "message_wait": "waiting for messages",
    "execution": "execution, not told apart",
    "completion": "completion back to the host",
    "host_transfer": "transfers of the host",
    "other": "something else",
}

_UNITS = {
    "gemm": "the GEMM unit of",
    "vector": "the vector unit of",
    "cpu": "the CPU of",
    "sram": "the SRAM of",
    "tcm.read": "the read port of the TCM of",
    "tcm.write": "the write port of the TCM of",
}


def bottleneck_words(found: Bottleneck | None) -> str:
    if found is None:
        return "none: no time passed"
    share = share_text(found.share)
    match found.kind:
        case "part":
            return f"{PART_WORDS[found.name]}: {share} of the time, on the critical path"
        case "memory" if found.name.endswith(".sram"):
            return f"{_unit_words(found.name)}: in use {share} of the time"
        case "memory":
            return f"the HBM behind {found.name}: in use {share} of the time, refresh included"
        case "link":
            return f"the link {found.name}: in use {share} of the time"
        case "unit":
            return f"{_unit_words(found.name)}: in use {share} of the time"


def _unit_words(name: str) -> str:
    for unit, words in _UNITS.items():
        if name.endswith(f".{unit}"):
            return f"{words} {name.removesuffix(f'.{unit}')}"
    return name
