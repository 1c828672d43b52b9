"""Models in GGUF files."""

__all__: tuple[str, ...] = ()
