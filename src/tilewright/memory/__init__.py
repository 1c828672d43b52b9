"""Byte-addressed storage, allocators, page tables, sanitizer."""

__all__: tuple[str, ...] = ()
