"""Weights of learned flows: given by the caller, or random ones that say so."""

import math
import zlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tilewright.attention.abs import Parameter
from tilewright.errors import FlowInitError


class Weights:
    """Tables by name. What is not given is drawn from ``seed``: right in shape, without quality.

    >>> Weights(None, seed=3).label
    'seeded random (seed 3)'
    """

    def __init__(self, given: Mapping[str, npt.ArrayLike] | None, *, seed: int = 0) -> None:
        self._given = None if given is None else dict(given)
        self._seed = seed
        self._tables: dict[tuple[str, tuple[int, ...]], Parameter] = {}

    @property
    def label(self) -> str:
        """For every result: whether these weights were learned or drawn."""
        return f"seeded random (seed {self._seed})" if self._given is None else "given"

    def matrix(self, name: str, rows: int, columns: int) -> Parameter:
        """[rows, columns] for all layers, or given as [layers, rows, columns]."""
        return self._kept(name, (rows, columns), layers=False)

    def by_head(self, name: str, heads: int, rows: int, columns: int) -> Parameter:
        """[layers, heads, rows, columns]; a drawn one has layer 0 only."""
        return self._kept(name, (heads, rows, columns), layers=True)

    def _kept(self, name: str, shape: tuple[int, ...], *, layers: bool) -> Parameter:
        """One object for a name and shape: a graph tells parameters by their identity."""
        if (name, shape) not in self._tables:
            self._tables[name, shape] = self._table(name, shape, layers=layers)
        return self._tables[name, shape]

    def _table(self, name: str, shape: tuple[int, ...], *, layers: bool) -> Parameter:
        if self._given is None:
            drawn = self._draw(name, shape)
            return Parameter(drawn[None] if layers else drawn)
        if name not in self._given:
            expected = f"a table {name!r} of shape {shape}"
            fix = "give every table, or none for seeded random ones"
            raise FlowInitError("weights", f"tables {sorted(self._given)}", expected, fix)
        table = np.asarray(self._given[name], dtype=np.float32)
        if table.shape[-len(shape) :] != shape or table.ndim - len(shape) not in (int(layers), 1):
            expected = f"{'[layers] + ' if layers else ''}{list(shape)}"
            fix = "weights must fit the sizes of the model"
            raise FlowInitError(f"weights {name!r}", f"shape {list(table.shape)}", expected, fix)
        return Parameter(table)

    def _draw(self, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        """Normal, with a variance that keeps the size of what it multiplies."""
        generator = np.random.default_rng([self._seed, zlib.crc32(name.encode())])
        drawn = generator.standard_normal(shape, dtype=np.float32)
        return drawn * np.float32(1.0 / math.sqrt(shape[-1]))
