"""Small definitions that users of Vortex import from ``utils``."""

__all__: tuple[str, ...] = ()
