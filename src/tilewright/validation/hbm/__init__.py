"""Memories against data sheets and replayed access patterns."""
