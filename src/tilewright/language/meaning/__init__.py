"""What each op of the kernel language means, in NumPy and in charges. No time, no memory."""

from tilewright.language.meaning.bound import (
    Array,
    Bound,
    Charge,
    GemmCharge,
    Meaning,
    evaluate,
    signature,
)
from tilewright.language.meaning.constant import constant
from tilewright.language.meaning.table import MEANINGS

__all__ = (
    "MEANINGS",
    "Array",
    "Bound",
    "Charge",
    "GemmCharge",
    "Meaning",
    "constant",
    "evaluate",
    "signature",
)
