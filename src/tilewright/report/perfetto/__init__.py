"""Traces in the format of ui.perfetto.dev."""

__all__: tuple[str, ...] = ()
