"""Tilewright: a workbench for LLM kernels on multi-chiplet accelerators."""

__all__: tuple[str, ...] = ()
