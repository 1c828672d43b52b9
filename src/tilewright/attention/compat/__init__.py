"""A table from Vortex's module paths and names to ours."""

__all__: tuple[str, ...] = ()
