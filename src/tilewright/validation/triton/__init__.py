"""Scalar semantics against the IR of Triton's compiler."""

__all__: tuple[str, ...] = ()
