"""Comparison of flows on sources, with latencies on machines."""
