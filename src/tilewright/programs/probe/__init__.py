"""Latency and bandwidth of host, DMA and contention cases, each beside its lower bound."""
