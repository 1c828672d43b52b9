"""KernBench: what its users bring, as things of ours."""

__all__: tuple[str, ...] = ()
