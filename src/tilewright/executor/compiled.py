"""The compiled half of programs, for those that run on the engine of the compiled core."""

from typing import Any

from tilewright.device.dma import Access
from tilewright.device.mmu import Walk
from tilewright.engine.spec import EngineKind
from tilewright.native import native_core

_core = native_core()

if _core is not None:
    _core.adopt_executor({access.name: access for access in Access} | {"Walk": Walk})


def compiled_front(kind: EngineKind) -> Any:
    """Return what issues commands on an engine; None on all but that of the compiled core."""
    return _core if kind is EngineKind.NATIVE else None
