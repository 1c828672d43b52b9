"""Decisions ahead of any text: targets, tiles, stages that share a kernel, bytes."""
