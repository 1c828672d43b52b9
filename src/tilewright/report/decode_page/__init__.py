"""Decode steps as one page that needs no other file."""

__all__: tuple[str, ...] = ()
