"""RuntimeContext: the facade and its torch-like namespaces."""

__all__: tuple[str, ...] = ()
