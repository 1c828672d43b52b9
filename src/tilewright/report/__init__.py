"""Traces, summaries, plots, pages."""

__all__: tuple[str, ...] = ()
