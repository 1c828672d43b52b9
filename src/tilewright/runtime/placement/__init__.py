"""Placement of tensors: which PE has which indices, and in which pages."""

__all__: tuple[str, ...] = ()
