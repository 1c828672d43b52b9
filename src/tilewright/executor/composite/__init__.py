"""Composites: commands that walk over tiles."""
