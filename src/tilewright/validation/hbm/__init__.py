"""Memories against data sheets and replayed access patterns."""

__all__: tuple[str, ...] = ()
