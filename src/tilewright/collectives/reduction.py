"""How values of ranks become one, and which dtypes they may have."""

from enum import StrEnum

from tilewright.collectives.operation import Operation
from tilewright.errors import CollectiveError
from tilewright.language.dtype import DType

__all__ = ("Reduction", "check_reduction")


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
