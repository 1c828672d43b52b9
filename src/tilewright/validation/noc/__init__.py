"""On-chip networks against queueing theory and a flit-level model."""

__all__: tuple[str, ...] = ()
