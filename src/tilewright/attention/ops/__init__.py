"""Stateless definitions of operations: inference and NumPy meaning."""

__all__: tuple[str, ...] = ()
