"""Graph to graph, one pass a file."""

__all__: tuple[str, ...] = ()
