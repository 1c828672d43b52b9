"""Ready flows, one a file."""

__all__: tuple[str, ...] = ()
