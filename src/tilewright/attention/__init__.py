"""Sparse attention: flows, the compiler of flows, and its backends."""

__all__: tuple[str, ...] = ()
