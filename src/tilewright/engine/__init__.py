"""How time passes: the event engines. Knows no hardware."""

from tilewright.engine.engine import Engine
from tilewright.engine.graph import TaskGraph
from tilewright.engine.hub import Hub
from tilewright.engine.hub_program import Program
from tilewright.engine.kind import AUTO, Auto, EngineKind
from tilewright.engine.select import build_engine, resolve_engine
from tilewright.engine.spec import Arbitration, EngineSpec, PacketView, ServerSpec, Service
from tilewright.engine.statistics import RouteStatistics, ServerStatistics, Statistics
from tilewright.engine.trace import MemoryRecord, TraceRecord, digest_of
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
