"""The kernel language of KernBench over ours (``kernbench.triton_emu.tl_context``)."""

from tilewright.interop.kernbench.language.context import TLContext

__all__ = ("TLContext",)
