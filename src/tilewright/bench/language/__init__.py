"""Speed of kernels beside Triton's interpreter and NumPy."""

__all__: tuple[str, ...] = ()
