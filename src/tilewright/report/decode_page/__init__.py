"""Decode steps as one page that needs no other file."""
