"""Composites: commands that walk over tiles."""

__all__ = ()
