"""Tensors of the host: their storage on devices, conversion, views."""
