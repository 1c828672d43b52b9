"""Kernels of a decode step, one module for each stage or way to do it."""
