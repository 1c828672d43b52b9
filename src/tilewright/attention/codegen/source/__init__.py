"""Source of kernels: trees of statements, walks over them, and the file that is printed."""
