"""The kernel language of KernBench over ours (``kernbench.triton_emu.tl_context``)."""
