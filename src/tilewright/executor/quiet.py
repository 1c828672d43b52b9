"""The process while programs run: few collections, silent NumPy, one BLAS thread.

Tiles are small, and a simulator process is one of many: threads that spin on a busy machine cost up
to a thousand times the product itself. NumPy cannot say so, an environment variable comes too late
(NumPy is loaded already), and each BLAS has a function of its own for it; ``threadpoolctl`` knows
them all, is one file without dependencies, and puts back what it found. NumPy builds on Apple's
Accelerate have no such switch; there VECLIB_MAXIMUM_THREADS=1 must be in the environment.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

COLLECTION_THRESHOLD = 10**6


@cache
def _controller() -> ThreadpoolController:
    """Looks at the libraries of the process once, which takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def rare_collections() -> Iterator[None]:
    """While many objects are made that stay, and few cycles: looking for these costs a third."""
    thresholds = gc.get_threshold()
    gc.set_threshold(COLLECTION_THRESHOLD, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def quiet_values() -> Iterator[None]:
    """While programs run: NumPy is silent and has one thread, and garbage is collected rarely.

    What the process had set comes back at the end.
    """
    with rare_collections(), np.errstate(all="ignore"), _controller().limit(limits=1):
        yield
