"""Expressions of ops: from operands by name to the source of a value."""
