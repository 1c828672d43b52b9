from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.collectives.worlds import machine_of_sips
from tilewright.collectives.buffers import Buffers, Piece, equal_rows, pairs_of, rows_by_size
from tilewright.collectives.operation import Operation
from tilewright.errors import CollectiveError
from tilewright.host import RuntimeContext, Tensor


def tensor(*shape: int, dtype: Any = np.float32) -> Tensor:
    return RuntimeContext(machine_of_sips(1)).from_numpy(np.zeros(shape, dtype))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(1, 4))
def test_rows_by_size_follow_each_other_and_are_the_whole(sizes: list[int], width: int) -> None:
    if not any(sizes):
        sizes[0] = 1
    whole = tensor(sum(sizes), width)
    pieces = rows_by_size("a call", whole, sizes, len(sizes))
    assert [piece.shape for piece in pieces] == [(size, width) for size in sizes]
    assert pieces[0].elements.start == 0
    assert pieces[-1].elements.stop == whole.numel()
    for one, following in pairwise(pieces):
        assert one.elements.stop == following.elements.start


def test_a_pile_has_parts_of_one_axis_less() -> None:
    part = tensor(3, 4)
    piled = equal_rows("a call", tensor(2, 3, 4), 2, part)
    joined = equal_rows("a call", tensor(6, 4), 2, part)
    assert [piece.shape for piece in piled if piece] == [(3, 4)] * 2
    assert [piece.shape for piece in joined if piece] == [(3, 4)] * 2


@pytest.mark.parametrize(
    ("size", "dtype", "words"),
    [(5, np.float32, "parts of 4 and 5 elements"), (4, np.int8, "tensors of fp32 and int8")],
)
def test_parts_that_do_not_belong_together_are_refused(size: int, dtype: Any, words: str) -> None:
    first, second = Piece(tensor(4)), Piece(tensor(size, dtype=dtype))
    with pytest.raises(CollectiveError, match=words):
        Buffers((first, None), (first, second)).check(Operation.ALL_GATHER)


def test_the_two_sides_of_a_pair_must_be_of_one_size() -> None:
    """Each pair may have its own."""
    inputs = (Piece(tensor(2)), Piece(tensor(3)))
    pairs_of(0, (Piece(tensor(2)), Piece(tensor(9))), inputs).check(Operation.ALL_TO_ALL)
    with pytest.raises(CollectiveError, match="parts of 2 and 7 elements"):
        pairs_of(0, (Piece(tensor(7)), Piece(tensor(9))), inputs).check(Operation.ALL_TO_ALL)
