"""Checks a flow before it runs: shapes, lint, numbers against dense definitions."""

from tilewright.attention.verify.check import DEFAULT_GEOMETRIES, check_flow, check_flows

__all__ = ("DEFAULT_GEOMETRIES", "check_flow", "check_flows")
