"""KernBench's tensor-parallel layers (``kernbench.tp``)."""

__all__: tuple[str, ...] = ()
