"""Where a program is on the machine: axes of PEs, cubes and SIPs beside those of the grid."""

from collections.abc import Collection

from tilewright.machine.coords import PeCoord

__all__ = ("HARDWARE_AXES", "place_on_axis")

HARDWARE_AXES = ("pe", "cube", "sip")


def place_on_axis(coord: PeCoord, used: Collection[PeCoord], axis: str) -> tuple[int, int]:
    """The place of a PE, and how many there are, among those that a launch uses.

    "pe" counts those of the PE's cube, "cube" the cubes of its SIP, "sip" the SIPs. Where a launch
    uses a whole machine, places are the machine's own numbers.

    >>> used = [PeCoord(0, 0, pe) for pe in (2, 5, 7)]
    >>> place_on_axis(PeCoord(0, 0, 5), used, "pe"), place_on_axis(PeCoord(0, 0, 5), used, "sip")
    ((1, 3), (0, 1))
    """
    if axis == "pe":
        places = {pe.pe for pe in used if (pe.sip, pe.cube) == (coord.sip, coord.cube)}
        here = coord.pe
    elif axis == "cube":
        places = {pe.cube for pe in used if pe.sip == coord.sip}
        here = coord.cube
    else:
        places = {pe.sip for pe in used}
        here = coord.sip
    return sorted(places).index(here), len(places)
