"""Programs written for KernBench, against NumPy in float64."""
