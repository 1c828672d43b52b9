"""The type of a value: format, symbolic leading axis, inner shape, element type."""

from dataclasses import dataclass, replace

from tilewright.attention.graph.dtype import DType
from tilewright.attention.graph.format import FORMAT, Leading


@dataclass(frozen=True, slots=True)
class ValueType:
    """``shape`` is inner: two sizes, or three (heads first) for a parameter with heads.

    ``token_axes`` are the inner axes (1, 2) that run over the tokens of a page. Whatever reduces or
    contracts such an axis leaves out the tokens that are not there yet, in the last page of a row.

    >>> str(ValueType(FORMAT.RAGGED, Leading.PAGES, (1, 4), DType.FLOAT32))
    'RAGGED float32 [S, 1, 4]'
    """

    format: FORMAT
    leading: Leading
    shape: tuple[int, ...]
    dtype: DType
    token_axes: tuple[int, ...] = ()

    def __str__(self) -> str:
        sizes = ", ".join([str(self.leading), *map(str, self.shape)])
        tokens = f" tokens:{','.join(map(str, self.token_axes))}" if self.token_axes else ""
        return f"{self.format.name} {self.dtype} [{sizes}]{tokens}"

    def sizes_with(self, dim: int, size: int) -> list[int]:
        """Return both inner sizes, that of axis ``dim`` replaced."""
        return [size if axis == dim else self.shape[axis - 1] for axis in (1, 2)]

    def with_shape(self, *shape: int, token_axes: tuple[int, ...] = ()) -> "ValueType":
        return replace(self, shape=shape, token_axes=token_axes)

    @property
    def num_elements(self) -> int:
        """Elements of one entry of the leading axis."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def num_bytes(self) -> int:
        """Stored bytes of one entry of the leading axis, rounded up to whole bytes."""
        return -(-self.num_elements * self.dtype.bits // 8)
