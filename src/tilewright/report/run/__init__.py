"""Runs and sweeps as text and plots."""

__all__: tuple[str, ...] = ()
