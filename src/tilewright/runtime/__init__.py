"""Requests, tensors, placement, mapping, launch."""

__all__: tuple[str, ...] = ()
