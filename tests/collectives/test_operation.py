from typing import Any

import numpy as np
import pytest

from tests.collectives.worlds import run_ranks
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.operation import Operation, Reduction, check_reduction, message_dtype
from tilewright.errors import CollectiveError
from tilewright.language.dtype import DTYPES, DType, float16, float32, float64, int1


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


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_a_sum_of_halves_is_rounded_once_whatever_way_it_takes(algorithm: str) -> None:
    """2048 + 1 is 2048 in f16, 2048 + 3 is 2052."""

    def program(rank: int, torch: Any, dist: Any) -> None:
        tensor = torch.from_numpy(np.full(16, 1 if rank else 2048, np.float16))
        dist.all_reduce(tensor)
        assert set(tensor.tolist()) == {2052.0}

    run_ranks(4, program, algorithm=algorithm)


def test_a_mean_of_halves_is_there_if_their_sum_is_not() -> None:
    def program(_: int, torch: Any, dist: Any) -> None:
        tensor = torch.from_numpy(np.full(3, 60_000, np.float16))
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
        assert set(tensor.tolist()) == {60_000.0}

    run_ranks(3, program)


def test_only_sums_and_products_of_narrow_floats_are_sent_wider() -> None:
    assert message_dtype(Operation.REDUCE, Reduction.SUM, float16) is float32
    assert message_dtype(Operation.REDUCE, Reduction.MAX, float16) is float16
    assert message_dtype(Operation.BROADCAST, Reduction.SUM, float16) is float16
    assert message_dtype(Operation.ALL_REDUCE, Reduction.SUM, float64) is float64
