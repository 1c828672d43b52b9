"""Plans and kernels of collective operations, process groups, workers."""

__all__: tuple[str, ...] = ()
