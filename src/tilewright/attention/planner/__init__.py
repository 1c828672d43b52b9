"""Graph to a frozen plan of buffers."""

__all__: tuple[str, ...] = ()
