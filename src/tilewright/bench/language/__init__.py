"""Speed of kernels beside Triton's interpreter and NumPy."""
