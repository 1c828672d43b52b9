"""How values of ranks become one, and which dtypes they may have."""

from enum import StrEnum

from tilewright.collectives.operation import Operation
from tilewright.errors import CollectiveError
from tilewright.language.dtype import DType, float32


class Reduction(StrEnum):
    """By the names of torch.distributed.ReduceOp."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "prod"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


ROUNDING = frozenset((Reduction.SUM, Reduction.AVG, Reduction.PRODUCT))
BITWISE = frozenset((Reduction.BAND, Reduction.BOR, Reduction.BXOR))
OF_BOOLS = {
    Reduction.SUM: Reduction.BOR,
    Reduction.MAX: Reduction.BOR,
    Reduction.PRODUCT: Reduction.BAND,
    Reduction.MIN: Reduction.BAND,
}


def check_reduction(operation: Operation, reduction: Reduction, dtype: DType) -> Reduction:
    """What is computed; what has no meaning for a dtype is refused, as torch does.

    The sum of bools is whether any is true, their product whether all are.
    """
    if not operation.combines:
        return reduction
    if dtype.is_bool():
        reduction = OF_BOOLS.get(reduction, reduction)
    is_fraction = reduction is Reduction.AVG and not dtype.is_floating()
    is_of_bits = reduction in BITWISE and dtype.is_floating()
    if is_fraction or is_of_bits:
        found = f"{reduction.value} of {dtype}"
        expected = "a dtype of floats" if is_fraction else "a dtype of integers"
        fix = "reduce by sum and divide" if is_fraction else "convert the tensor first"
        raise CollectiveError(operation.value, found, expected, fix)
    return reduction


def accumulation_dtype(reduction: Reduction, dtype: DType) -> DType:
    """Of what some ranks have brought so far: a narrow float is rounded once, at the end.

    >>> from tilewright.language.dtype import float16
    >>> accumulation_dtype(Reduction.SUM, float16), accumulation_dtype(Reduction.MAX, float16)
    (tl.float32, tl.float16)
    """
    is_narrow = dtype.is_floating() and dtype.bits < float32.bits
    return float32 if is_narrow and reduction in ROUNDING else dtype


def message_dtype(operation: Operation, reduction: Reduction, dtype: DType) -> DType:
    """Of the widest elements that are sent."""
    return accumulation_dtype(reduction, dtype) if operation.combines else dtype
