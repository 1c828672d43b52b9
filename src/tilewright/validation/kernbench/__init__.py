"""Programs written for KernBench, against NumPy in float64."""

__all__: tuple[str, ...] = ()
