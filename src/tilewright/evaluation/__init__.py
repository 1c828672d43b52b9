"""Quality metrics of sparse attention."""

__all__: tuple[str, ...] = ()
