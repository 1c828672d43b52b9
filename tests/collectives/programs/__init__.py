"""Programs for torch.distributed: ``(torch, dist, rank, world)`` to what the rank ends with.

They use what both torch and a RuntimeContext have, and nothing else.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tests.collectives.programs import (
    algorithms,
    gathering,
    groups,
    handles,
    learning,
    messages,
    reducing,
)

Program = Callable[[Any, Any, int, int], Any]

PROGRAMS: Mapping[str, Program] = MappingProxyType(
    {
        f"{module.__name__.rpartition('.')[2]}.{program.__name__}": program
        for module in (reducing, gathering, messages, groups, handles, algorithms, learning)
        for program in module.PROGRAMS
    }
)
