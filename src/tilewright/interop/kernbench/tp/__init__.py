"""KernBench's tensor-parallel layers (``kernbench.tp``)."""
