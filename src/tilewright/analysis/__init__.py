"""What simulated time says: critical paths, breakdowns, use, bounds, advice."""
