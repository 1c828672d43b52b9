"""Simulated efficiency of collectives."""

__all__: tuple[str, ...] = ()
