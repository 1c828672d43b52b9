"""Graph to readable program bodies in plain Triton."""

__all__: tuple[str, ...] = ()
