"""Runs and sweeps as text and plots."""
