"""KernBench's collectives (``kernbench.ccl``): rings, algorithms, checks of a call."""
