"""Look at machines: what they are, and what is wrong with a file."""

ORDER = ("list", "check", "show", "import")
