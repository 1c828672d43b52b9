"""What composes the next row: demo, run with its traces, compare, sweep."""

__all__: tuple[str, ...] = ()
