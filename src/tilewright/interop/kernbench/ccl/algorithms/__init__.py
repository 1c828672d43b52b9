"""All-reduce algorithms as KernBench's plug-ins: a kernel in its dialect, and its arguments."""

__all__: tuple[str, ...] = ()
