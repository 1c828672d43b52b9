"""All-reduce algorithms as KernBench's plug-ins: a kernel in its dialect, and its arguments."""
