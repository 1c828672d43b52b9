"""Other simulators on the same loads: the baselines of the speed benchmark.

A peer needs a library of the extra ``bench``; this module needs none and loads peers on demand.
"""

from importlib import import_module
from types import ModuleType

from tilewright.errors import MissingExtraError

__all__ = ("load_peer",)


def load_peer(module: str) -> ModuleType:
    """Import a peer by its name here, such as ``simpy_message``."""
    where = f"tilewright.bench.peers.{module}"
    try:
        return import_module(where)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("tilewright"):
            raise
        raise MissingExtraError(where, error.name, "bench") from error
