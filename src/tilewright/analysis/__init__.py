"""What simulated time says: critical paths, breakdowns, use, bounds, advice."""

__all__: tuple[str, ...] = ()
