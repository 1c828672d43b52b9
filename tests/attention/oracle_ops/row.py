"""What a definition may know about the one row it works on, and how to read its arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
AnyArray = NDArray[Any]  # float64, int64 or bool, as the op's types say
Mask = NDArray[np.bool_]
Positions = NDArray[np.int64]

MASKED = -1e30  # what a relation that does not hold adds to a score


@dataclass(frozen=True, slots=True)
class OracleRow:
    """One request and one KV head at one decode step.

    Arrays of a row have rank 3: ``[num_pages, r, c]`` with one entry a page in logical order, or
    ``[1, r, c]`` where one value serves the whole row. On the cache side the one entry is ``page``.
    """

    num_pages: int
    first_reserved: int = 1
    last_reserved: int = 1
    block_size: int = 16
    last_page_tokens: int = 16
    budget: int = 1  # pages that a selection without a number of its own takes from the middle
    step: int = 0
    layer: int = 0
    head: int = 0
    query_heads: int = 1
    page: int | None = None

    @property
    def middle(self) -> range:
        """The pages that a selection may choose from."""
        stop = max(self.num_pages - self.last_reserved, 0)
        return range(min(self.first_reserved, stop), stop)

    def span(self, name: str) -> range:
        return self.middle if name == "middle" else range(self.num_pages)

    @property
    def reserved(self) -> tuple[int, ...]:
        return tuple(page for page in range(self.num_pages) if page not in self.middle)

    @property
    def pages(self) -> tuple[int, ...]:
        """The page of each entry."""
        return tuple(range(self.num_pages)) if self.page is None else (self.page,)

    def tokens_in(self, page: int) -> int:
        return self.last_page_tokens if page == self.num_pages - 1 else self.block_size


@dataclass(frozen=True, slots=True)
class Operand:
    """An array, and which of its elements belong to tokens that are there."""

    values: AnyArray
    there: Mask


def operand_of(row: OracleRow, values: AnyArray, token_axes: tuple[int, ...]) -> Operand:
    there = np.ones(values.shape, dtype=bool)
    for index in np.ndindex(*values.shape):
        for axis in token_axes:
            if index[axis] >= row.tokens_in(row.pages[index[0]]):
                there[index] = False
    return Operand(values, there)


def at_page(array: AnyArray, page: int) -> AnyArray:
    """The inner matrix that ``array`` has at ``page``: a value for the row serves every page."""
    inner: AnyArray = array[0] if array.shape[0] == 1 else array[page]
    return inner


def num_entries(*arrays: AnyArray) -> int:
    """The leading size of what these arrays give together."""
    return max(len(array) for array in arrays)


def at_inner(matrix: AnyArray, i: int, j: int) -> Any:
    """Element (i, j) of a matrix whose sides of size 1 are stretched, as a Python number."""
    rows, columns = matrix.shape
    return matrix[0 if rows == 1 else i, 0 if columns == 1 else j].item()


def wrapped(value: int) -> int:
    """A whole number in 32 bits with a sign."""
    return (value + 2**31) % 2**32 - 2**31


def are_whole(*arrays: AnyArray) -> bool:
    return all(array.dtype.kind == "i" for array in arrays)
