"""KernBench: what its users bring, as things of ours."""
