"""Tensor-parallel layers."""

__all__: tuple[str, ...] = ()
