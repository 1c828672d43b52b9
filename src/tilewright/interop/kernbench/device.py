"""Devices of KernBench programs: ``kernbench.runtime_api.types``."""

from dataclasses import dataclass

from tilewright.interop.kernbench.error import ValueProgramError

__all__ = ("DeviceSelector", "resolve_device", "sips_of")


@dataclass(frozen=True, slots=True)
class DeviceSelector:
    """The SIPs that a context may use: all, or one."""

    is_all: bool
    sip_index: int | None = None

    def __str__(self) -> str:
        return "all" if self.is_all else f"sip:{self.sip_index}"


def resolve_device(text: str) -> DeviceSelector:
    """Read "all" or "sip:N".

    >>> resolve_device("sip:1").sip_index
    1
    """
    if text == "all":
        return DeviceSelector(is_all=True)
    kind, _, number = str(text).partition(":")
    if kind == "sip" and number.isascii() and number.isdigit():
        return DeviceSelector(is_all=False, sip_index=int(number))
    raise ValueProgramError("device", repr(text), "'all' or 'sip:N'", "correct the device")


def sips_of(device: DeviceSelector | str, num_sips: int) -> tuple[int, ...]:
    """Return the SIPs of a device on a machine that has so many."""
    chosen = device if isinstance(device, DeviceSelector) else resolve_device(str(device))
    if chosen.is_all:
        return tuple(range(num_sips))
    if chosen.sip_index is None or not 0 <= chosen.sip_index < num_sips:
        expected = f"a SIP from 0 to {num_sips - 1}"
        raise ValueProgramError("target_device", str(chosen), expected, "correct the device")
    return (chosen.sip_index,)
