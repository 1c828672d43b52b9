"""Triton kernels, unmodified: their objects adapted, their text rewritten to what it means."""
