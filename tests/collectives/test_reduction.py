import pytest

from tilewright.collectives.operation import Operation
from tilewright.collectives.reduction import Reduction, check_reduction
from tilewright.errors import CollectiveError
from tilewright.language.dtype import DTYPES, DType, int1


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("reduction", Reduction)
def test_means_are_of_floats_and_bits_are_of_integers(reduction: Reduction, dtype: DType) -> None:
    is_float = dtype.is_floating()
    is_refused = (reduction is Reduction.AVG and not is_float) or (
        reduction in (Reduction.BAND, Reduction.BOR, Reduction.BXOR) and is_float
    )
    if is_refused:
        with pytest.raises(CollectiveError, match=" of "):
            check_reduction(Operation.ALL_REDUCE, reduction, dtype)
    else:
        check_reduction(Operation.ALL_REDUCE, reduction, dtype)


def test_the_sum_of_bools_is_whether_any_is_true() -> None:
    assert check_reduction(Operation.REDUCE, Reduction.SUM, int1) is Reduction.BOR
    assert check_reduction(Operation.REDUCE, Reduction.PRODUCT, int1) is Reduction.BAND


def test_what_reduces_nothing_takes_any_dtype() -> None:
    assert check_reduction(Operation.BROADCAST, Reduction.AVG, int1) is Reduction.AVG
