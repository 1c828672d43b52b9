"""Other simulators on the same loads, which benchmarks load on demand and time in turn with ours.

A peer needs a library of the extra ``bench``; this module needs none.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from tilewright.errors import MissingExtraError

__all__ = ("collector_at_rest", "load_peer")


def load_peer(module: str) -> ModuleType:
    """Import a peer by its name here, such as ``simpy_message``."""
    where = f"tilewright.bench.peers.{module}"
    try:
        return import_module(where)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("tilewright"):
            raise
        raise MissingExtraError(where, error.name, "bench") from error


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Let no garbage collection happen inside a timed run, whoever runs."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
