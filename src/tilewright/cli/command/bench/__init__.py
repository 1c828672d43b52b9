"""Measure the simulator itself, as ratios to peers in one run."""

ORDER = ("engine", "language", "collectives", "attention", "decode")
