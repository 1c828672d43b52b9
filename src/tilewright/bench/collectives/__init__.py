"""Simulated efficiency of collectives."""
