"""Changes of a machine that would make a run faster, with bounds and estimates."""

__all__: tuple[str, ...] = ()
