"""How the hardware behaves, one file per block."""

from tilewright.device.build import Device, build_device
from tilewright.device.dma import Access, Channel

__all__ = ("Access", "Channel", "Device", "build_device")
