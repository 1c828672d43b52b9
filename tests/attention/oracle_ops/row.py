"""What a definition may know about the one row it works on, and how to read its arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Positions = NDArray[np.int64]

MASKED = -1e30  # what a relation that does not hold adds to a score


@dataclass(frozen=True, slots=True)
class OracleRow:
    """One request and one KV head at one decode step.

    Arrays of a row have rank 3: ``[num_pages, r, c]`` with one entry a page in logical order, or
    ``[1, r, c]`` where one value serves the whole row.
    """

    num_pages: int
    first_reserved: int = 1
    last_reserved: int = 1
    block_size: int = 16
    last_page_tokens: int = 16
    budget: int = 1  # pages to choose from the middle
    step: int = 0
    head: int = 0

    @property
    def middle(self) -> range:
        """The pages that a selection may choose from."""
        stop = max(self.num_pages - self.last_reserved, 0)
        return range(min(self.first_reserved, stop), stop)

    @property
    def reserved(self) -> tuple[int, ...]:
        return tuple(page for page in range(self.num_pages) if page not in self.middle)

    def tokens_in(self, page: int) -> int:
        return self.last_page_tokens if page == self.num_pages - 1 else self.block_size


def at_page(array: Array, page: int) -> Array:
    """The inner matrix that ``array`` has at ``page``: a value for the row serves every page."""
    inner: Array = array[0] if array.shape[0] == 1 else array[page]
    return inner


def num_entries(*arrays: Array) -> int:
    """The leading size of what these arrays give together."""
    return max(len(array) for array in arrays)


def at_inner(matrix: Array, i: int, j: int) -> float:
    """Element (i, j) of a matrix whose sides of size 1 are stretched."""
    rows, columns = matrix.shape
    return float(matrix[0 if rows == 1 else i, 0 if columns == 1 else j])
