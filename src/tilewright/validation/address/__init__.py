"""Accesses to addresses that a PE may not use, each of which must be an error."""
