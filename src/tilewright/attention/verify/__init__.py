"""Checks of a compiled flow against the reference backend."""

__all__: tuple[str, ...] = ()
