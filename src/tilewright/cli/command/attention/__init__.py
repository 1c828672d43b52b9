"""Sparse attention: check flows, show what they mean, run them."""

ORDER = ("list", "check", "show", "compile", "run", "compare")
