"""`vTensor`: what a value looks like while a flow is traced. Metadata only."""

from collections.abc import Sequence

from tilewright.attention.graph import FORMAT, DType
from tilewright.attention.utils import resolve_dtype

__all__ = ("FORMAT", "as_vtensor", "vTensor")


class vTensor:
    """Shape, element type and format. The leading size is a placeholder, 0 while tracing.

    >>> vTensor((0, 3, 128)).padded_shape
    (0, 4, 128)
    """

    def __init__(
        self,
        shape: Sequence[int] = (),
        dtype: object = DType.BFLOAT16,
        device: object = None,
        _format: FORMAT = FORMAT.BATCHED,
        tensor_id: int = -1,
        padded_shape: Sequence[int] | None = None,
    ) -> None:
        if not isinstance(_format, FORMAT):
            raise TypeError(f"_format must be a FORMAT, not {_format!r}")
        if isinstance(tensor_id, bool) or not isinstance(tensor_id, int):
            raise TypeError(f"tensor_id must be an int, not {tensor_id!r}")
        self.shape = _sizes("shape", shape)
        self.padded_shape = _padded(self.shape)
        if padded_shape is not None:
            self.padded_shape = _sizes("padded_shape", padded_shape)
        self.dtype = resolve_dtype(dtype)
        self.device = device
        self._format = _format
        self.tensor_id = tensor_id

    def dim(self) -> int:
        return len(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    def size(self, dim: int | None = None) -> tuple[int, ...] | int:
        return self.shape if dim is None else self.shape[dim]

    def needs_padding(self) -> bool:
        """Whether an inner size is no power of two. Nothing a flow computes depends on it."""
        return self.padded_shape != self.shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, {self.dtype}, {self._format.name})"


def as_vtensor(
    x: object = None,
    _format: FORMAT = FORMAT.BATCHED,
    tensor_id: int = -1,
    *,
    shape: Sequence[int] | None = None,
    dtype: object = None,
    device: object = None,
) -> vTensor:
    """Re-tag a vTensor in place, or describe a real tensor, or build one from keywords."""
    if isinstance(x, vTensor):
        x._format = _format
        x.tensor_id = tensor_id
        return x
    shape = shape if shape is not None else getattr(x, "shape", None)
    if shape is None:
        raise TypeError(f"as_vtensor needs a tensor or shape=, not {x!r}")
    dtype = dtype if dtype is not None else getattr(x, "dtype", DType.BFLOAT16)
    device = device if device is not None else getattr(x, "device", None)
    return vTensor(tuple(shape), dtype, device, _format, tensor_id)


def _sizes(name: str, sizes: Sequence[int]) -> tuple[int, ...]:
    if any(isinstance(size, bool) or not isinstance(size, int) for size in sizes):
        raise TypeError(f"{name} must hold ints, not {tuple(sizes)!r}")
    return tuple(sizes)


def _padded(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Inner sizes rounded up to powers of two."""
    return tuple(
        size if axis == 0 or size < 1 else 1 << (size - 1).bit_length()
        for axis, size in enumerate(shape)
    )
