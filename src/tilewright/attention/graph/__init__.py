"""Immutable nodes, values and state variables of a traced flow."""

__all__: tuple[str, ...] = ()
