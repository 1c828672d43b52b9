"""Traces in the format of ui.perfetto.dev."""
