"""Byte-addressed storage, allocators, page tables, sanitizer."""

from tilewright.memory.address import (
    MemoryKind,
    MemoryPlace,
    PhysicalByte,
    RangeMapping,
    VirtualByte,
    VirtualPage,
    VirtualRange,
)
from tilewright.memory.allocator import Allocation, Allocator, AllocatorStatistics, VirtualSpace
from tilewright.memory.mapping import (
    MapMsg,
    MappingPlan,
    MapTarget,
    ShardRange,
    Sight,
    UnmapMsg,
    plan_mapping,
)
from tilewright.memory.page_table import PageTable, PhysicalRun
from tilewright.memory.sanitizer.finding import Finding, FindingKind, Findings
from tilewright.memory.sanitizer.sanitizer import Sanitizer
from tilewright.memory.store import ByteStore

__all__ = (
    "Allocation",
    "Allocator",
    "AllocatorStatistics",
    "ByteStore",
    "Finding",
    "FindingKind",
    "Findings",
    "MapMsg",
    "MapTarget",
    "MappingPlan",
    "MemoryKind",
    "MemoryPlace",
    "PageTable",
    "PhysicalByte",
    "PhysicalRun",
    "RangeMapping",
    "Sanitizer",
    "ShardRange",
    "Sight",
    "UnmapMsg",
    "VirtualByte",
    "VirtualPage",
    "VirtualRange",
    "VirtualSpace",
    "plan_mapping",
)
