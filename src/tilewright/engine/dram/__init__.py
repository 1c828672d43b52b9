"""Memories that serve accesses: an HBM slice with its banks, or a rate and a latency."""
