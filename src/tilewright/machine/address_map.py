"""Where the bytes of an HBM slice are: pseudo-channel, bank, row and column.

Consecutive ``interleave_bytes`` of a slice go to consecutive pseudo-channels. Inside one of them
the fields of ``address_map`` are the digits of the byte's number, the lowest first; their sizes
need not be powers of two.
"""

from dataclasses import dataclass

from tilewright.errors import SpecError
from tilewright.machine.spec import HbmSpec


@dataclass(frozen=True, slots=True)
class BurstPlace:
    """The cells of one burst in its pseudo-channel."""

    bank_group: int
    bank: int
    stack_id: int
    row: int
    column: int


@dataclass(frozen=True, slots=True)
class SliceMap:
    """The map of one slice. All slices of a machine are alike."""

    slice_bytes: int
    num_pseudo_channels: int  # of a slice
    interleave_bytes: int
    burst_bytes: int
    digits: tuple[tuple[str, int], ...]  # fields above the burst with their sizes, lowest first

    @property
    def pseudo_channel_bytes(self) -> int:
        return self.slice_bytes // self.num_pseudo_channels

    @property
    def num_bursts(self) -> int:
        """Bursts of one pseudo-channel."""
        return self.pseudo_channel_bytes // self.burst_bytes

    def owner_of(self, cube_offset: int) -> int:
        """The PE whose slice has this byte of a cube's HBM."""
        return cube_offset // self.slice_bytes

    def burst_of(self, offset: int) -> tuple[int, int]:
        """Pseudo-channel and number of the burst in it that holds a byte of the slice."""
        _check("offset in a slice", offset, self.slice_bytes)
        chunk, inside = divmod(offset, self.interleave_bytes)
        turn, channel = divmod(chunk, self.num_pseudo_channels)
        return channel, (turn * self.interleave_bytes + inside) // self.burst_bytes

    def offset_of(self, channel: int, burst: int) -> int:
        """The first byte in the slice of a burst: the way back."""
        _check("pseudo-channel", channel, self.num_pseudo_channels)
        _check("burst", burst, self.num_bursts)
        turn, inside = divmod(burst * self.burst_bytes, self.interleave_bytes)
        return (turn * self.num_pseudo_channels + channel) * self.interleave_bytes + inside

    def place_of(self, burst: int) -> BurstPlace:
        """Bank, row and column of a burst."""
        _check("burst", burst, self.num_bursts)
        rest = burst
        values: dict[str, int] = {}
        for field, size in self.digits:
            rest, values[field] = divmod(rest, size)
        return BurstPlace(**values)

    def burst_at(self, place: BurstPlace) -> int:
        """The number of the burst at a place: the way back."""
        burst = 0
        for field, size in reversed(self.digits):
            value = getattr(place, field)
            _check(field, value, size)
            burst = burst * size + value
        return burst


def build_slice_map(hbm: HbmSpec, *, num_slices: int) -> SliceMap:
    """The map of each slice. The spec has checked that the parts fill the capacity exactly."""
    fixed = {
        "bank_group": hbm.bank_groups,
        "column": hbm.row_bytes // hbm.burst_bytes,
        "bank": hbm.banks,
        "stack_id": hbm.stack_ids,
    }
    row_set_bytes = hbm.burst_bytes  # one row of every bank
    for size in fixed.values():
        row_set_bytes *= size
    sizes = fixed | {"row": hbm.capacity_bytes // hbm.pseudo_channels // row_set_bytes}
    return SliceMap(
        slice_bytes=hbm.capacity_bytes // num_slices,
        num_pseudo_channels=hbm.pseudo_channels // num_slices,
        interleave_bytes=hbm.interleave_bytes,
        burst_bytes=hbm.burst_bytes,
        digits=tuple((field, sizes[field]) for field in hbm.address_map if field != "burst"),
    )


def _check(what: str, value: int, limit: int) -> None:
    if type(value) is not int or not 0 <= value < limit:
        raise SpecError(what, repr(value), f"an int in 0..{limit - 1}", "stay inside the slice")
