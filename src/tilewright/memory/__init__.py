"""Byte-addressed storage, allocators, page tables, sanitizer."""

from tilewright.memory.address import PhysicalByte, PhysicalPage, VirtualByte, VirtualPage
from tilewright.memory.allocator import Allocation, Allocator, AllocatorStatistics
from tilewright.memory.mapping import (
    MapMsg,
    MappingPlan,
    MapTarget,
    ShardPages,
    Sight,
    UnmapMsg,
    plan_mapping,
)
from tilewright.memory.page_table import PageMapping, PageRange, PageTable, PhysicalRun
from tilewright.memory.store import ByteStore
from tilewright.memory.virtual import VirtualSpace

__all__ = (
    "Allocation",
    "Allocator",
    "AllocatorStatistics",
    "ByteStore",
    "MapMsg",
    "MapTarget",
    "MappingPlan",
    "PageMapping",
    "PageRange",
    "PageTable",
    "PhysicalByte",
    "PhysicalPage",
    "PhysicalRun",
    "ShardPages",
    "Sight",
    "UnmapMsg",
    "VirtualByte",
    "VirtualPage",
    "VirtualSpace",
    "plan_mapping",
)
