"""What a flow's author writes, and its tracing into a graph."""

__all__: tuple[str, ...] = ()
