"""Requests, tensors, placement, mapping, launch."""
