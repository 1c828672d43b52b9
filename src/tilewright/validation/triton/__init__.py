"""Scalar semantics against the IR of Triton's compiler."""
