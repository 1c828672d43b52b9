"""How time passes: the event engines. Knows no hardware."""

from tilewright.engine.engine import Engine, build_engine
from tilewright.engine.graph import TaskGraph
from tilewright.engine.hub import Hub
from tilewright.engine.hub_program import Program
from tilewright.engine.spec import (
    AUTO,
    Arbitration,
    Auto,
    EngineKind,
    EngineSpec,
    PacketView,
    ServerSpec,
    Service,
    resolve_engine,
)
from tilewright.engine.statistics import (
    MemoryRecord,
    RouteStatistics,
    ServerStatistics,
    Statistics,
    TraceRecord,
    digest_of,
)
from tilewright.native import native_built

__all__ = (
    "AUTO",
    "Arbitration",
    "Auto",
    "Engine",
    "EngineKind",
    "EngineSpec",
    "Hub",
    "MemoryRecord",
    "PacketView",
    "Program",
    "RouteStatistics",
    "ServerSpec",
    "ServerStatistics",
    "Service",
    "Statistics",
    "TaskGraph",
    "TraceRecord",
    "build_engine",
    "digest_of",
    "native_built",
    "resolve_engine",
)
