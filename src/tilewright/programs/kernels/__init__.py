"""Kernels of the ready programs: plain functions of the language, one PE's share each."""
