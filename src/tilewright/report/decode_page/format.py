"""Times, bytes and bottlenecks in so few words that a column can hold them."""

from tilewright.records import Bottleneck
from tilewright.units import format_bytes, format_ps, share_text

_UNITS = {
    "gemm": "GEMM",
    "vector": "vector",
    "cpu": "PE CPU",
    "tcm.read": "TCM port",
    "tcm.write": "TCM port",
}


def latency_text(latency_ps: int) -> str:
    """Three figures are enough to compare.

    >>> latency_text(307_218_542), latency_text(1_234_567), latency_text(0)
    ('307 us', '1.23 us', '0 ps')
    """
    rounding = 10 ** max(0, len(str(latency_ps)) - 3)
    return format_ps((latency_ps + rounding // 2) // rounding * rounding)


def bytes_text(num_bytes: int) -> str:
    """Two or three figures are enough to compare.

    >>> bytes_text(8_589_934_592), bytes_text(157_286_400), bytes_text(1000)
    ('8.0 GiB', '150 MiB', '1000 B')
    """
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        amount = num_bytes / 2**power
        if amount >= 1:
            return f"{amount:.{1 if amount < 10 else 0}f} {unit}"
    return format_bytes(num_bytes)


def short_bottleneck(found: Bottleneck | None) -> str:
    """What had the greatest share, without its place.

    >>> short_bottleneck(Bottleneck(kind="memory", name="sip0.cube0.hbm_ctrl.pe3", share=0.93))
    'HBM 93 %'
    >>> short_bottleneck(Bottleneck(kind="part", name="memory_read", share=0.5))
    'memory read 50 %'
    """
    if found is None:
        return "none"
    return f"{_what(found)} {share_text(found.share)}"


def _what(found: Bottleneck) -> str:
    match found.kind:
        case "part":
            return found.name.replace("_", " ")
        case "memory":
            return "HBM"
        case "link":
            return "link"
        case "unit":
            names = (words for unit, words in _UNITS.items() if found.name.endswith(f".{unit}"))
            return next(names, "unit")
