"""Byte-addressed storage, allocators, page tables, sanitizer."""

from tilewright.memory.store import ByteStore

__all__ = ("ByteStore",)
