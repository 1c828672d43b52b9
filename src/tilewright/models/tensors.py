"""Named tensors of a file, asked for by their role in a model."""

from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tilewright.errors import ModelFileError

Floats = npt.NDArray[np.float32]


class TensorSource(Protocol):
    """A file of named tensors."""

    @property
    def where(self) -> str: ...

    @property
    def names(self) -> frozenset[str]: ...

    def read(self, name: str, shape: tuple[int, ...]) -> Floats:
        """A tensor as float32; raises ModelFileError if it is missing or of another shape."""
        ...


class Tensors:
    """Remembers what was read, so that nothing in a file goes unnoticed."""

    def __init__(self, source: TensorSource, names: Mapping[str, str]) -> None:
        self._source = source
        self._names = names  # by role; {layer} and {expert} are filled in
        self._read: set[str] = set()

    def read(self, role: str, *shape: int, layer: int = 0, expert: int = 0) -> Floats:
        name = self._names[role].format(layer=layer, expert=expert)
        self._read.add(name)
        return self._source.read(name, shape)

    def check_all_read(self, *, ignored: Iterable[str] = ()) -> None:
        """Refuse a file with more in it: a variant that the forward pass does not know.

        Names that begin as one of ``ignored`` may be left over.
        """
        prefixes = tuple(ignored)
        left = sorted(n for n in self._source.names - self._read if not n.startswith(prefixes))
        if left:
            found = f"{len(left)} tensors without a place in the model, such as {left[0]!r}"
            raise ModelFileError(self._source.where, found, "none", "choose another model")
