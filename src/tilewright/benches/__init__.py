"""Ready programs, probe, the oracles of ``validate``, speed benchmarks."""

__all__: tuple[str, ...] = ()
