"""The commands of ``tilewright``: a module for each, a folder for each group."""

ORDER = (
    "demo", "probe", "validate", "run", "list", "explain", "compare", "generate",
    "machine", "attention", "bench",
)  # fmt: skip
