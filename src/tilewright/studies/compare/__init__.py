"""Comparison of flows on sources, with latencies on machines."""

__all__: tuple[str, ...] = ()
