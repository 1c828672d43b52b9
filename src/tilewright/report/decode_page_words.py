"""A bottleneck in so few words that a column can hold it."""

from tilewright.records import Bottleneck
from tilewright.report.run_words import share_text

__all__ = ("short_bottleneck",)

_UNITS = {
    "gemm": "GEMM unit",
    "vector": "vector unit",
    "cpu": "PE CPU",
    "tcm.read": "TCM port",
    "tcm.write": "TCM port",
}


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
