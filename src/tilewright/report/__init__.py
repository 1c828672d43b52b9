"""Traces, summaries, plots, pages."""
