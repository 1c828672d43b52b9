"""On-chip networks against queueing theory and a flit-level model."""
