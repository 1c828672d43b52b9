"""How KernBench programs place tensors: ``kernbench.policy.placement.dp``."""

from dataclasses import dataclass
from typing import Any, NoReturn

from tilewright.errors import PlacementError, UnknownAttributeError
from tilewright.interop.kernbench.value import dtype_of_size, whole_number
from tilewright.runtime.placement import policy as ours
from tilewright.runtime.placement.placement import Targets, place

WORDS = tuple(word.value for word in ours.LayoutWord)
PAGE_BYTES = 1  # of a placement that is arithmetic alone: no page is taken


class DPPolicy:
    """How the cubes of a SIP divide a tensor, and the PEs of a cube their part.

    Newer programs name ``cube``, ``pe``, ``num_pes`` and ``num_cubes``, in this order. Older ones
    also name ``sip`` and ``num_sips``, or give three words by position: SIP, cube, PE.

    >>> DPPolicy(cube="row_wise", num_cubes=4)
    DPPolicy(cube='row_wise', pe='replicate', num_cubes=4)
    >>> DPPolicy("column_wise", "replicate", "row_wise").sip
    'column_wise'
    """

    def __init__(
        self,
        cube: str = "replicate",
        pe: str = "replicate",
        num_pes: int | str | None = None,
        num_cubes: int | None = None,
        *,
        sip: str = "replicate",
        num_sips: int | None = None,
    ) -> None:
        if isinstance(num_pes, str):  # the older order
            if num_pes not in WORDS:
                expected = "a number of PEs, or by position the words of SIP, cube and PE"
                raise PlacementError("DPPolicy num_pes", repr(num_pes), expected, "correct it")
            sip, cube, pe, num_pes = cube, pe, num_pes, None
        for level, word in (("sip", sip), ("cube", cube), ("pe", pe)):
            if word not in WORDS:
                expected = ", ".join(map(repr, WORDS))
                raise PlacementError(f"DPPolicy {level}", repr(word), expected, "write one of them")
        self.sip, self.cube, self.pe = sip, cube, pe
        self.num_sips, self.num_cubes = python_int(num_sips), python_int(num_cubes)
        self.num_pes = python_int(num_pes)
        self.ours = ours.DPPolicy(
            sip=sip, cube=cube, pe=pe,
            num_sips=self.num_sips, num_cubes=self.num_cubes, num_pes=self.num_pes,
        )  # fmt: skip
        """The same policy as our runtime has it."""

    def __repr__(self) -> str:
        said = {"cube": self.cube, "pe": self.pe}
        if self.sip != "replicate":
            said["sip"] = self.sip
        counts = {"num_sips": self.num_sips, "num_cubes": self.num_cubes, "num_pes": self.num_pes}
        texts = [f"{name}={word!r}" for name, word in said.items()]
        texts += [f"{name}={count}" for name, count in counts.items() if count is not None]
        return f"DPPolicy({', '.join(texts)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DPPolicy) and self.ours == other.ours

    def __hash__(self) -> int:
        return hash(self.ours)


def python_int(count: Any) -> Any:
    """Return NumPy's integers as Python's, and all else as it is."""
    number = whole_number(count)
    return count if number is None else number


@dataclass(frozen=True, slots=True)
class ShardSpec:
    """A shard on one PE: ``nbytes`` bytes from ``offset_bytes`` of the tensor's range on."""

    sip: int
    cube: int
    pe: int
    offset_bytes: int
    nbytes: int

    @property
    def pe_index(self) -> NoReturn:
        """The flat number of older programs, which is refused: it depends on who counts."""
        fix = "compute it: (sip * cubes + cube) * pes + pe"
        raise UnknownAttributeError("ShardSpec", "no pe_index", "sip, cube and pe", fix)


def resolve_dp_policy(
    dp: DPPolicy,
    *,
    shape: tuple[int, ...],
    itemsize: int,
    num_pe: int,
    num_cubes: int,
    target_sip: int | None = None,
    num_sips: int | None = None,
) -> list[ShardSpec]:
    """Return the shards of a tensor, SIP by SIP, cube by cube, PE by PE.

    ``num_pe``, ``num_cubes`` and ``num_sips`` are the units that there are; the policy's own counts
    go before them. ``target_sip`` is the only SIP; older programs say how many there are instead.

    >>> resolve_dp_policy(DPPolicy(pe="row_wise"), shape=(4, 8), itemsize=2, num_pe=2, num_cubes=1)
    [ShardSpec(sip=0, cube=0, pe=0, offset_bytes=0, nbytes=32), \
ShardSpec(sip=0, cube=0, pe=1, offset_bytes=32, nbytes=32)]
    """
    sips = tuple(range(1 if num_sips is None else num_sips))
    if target_sip is not None:
        sips = (target_sip,)
    targets = Targets(sips, tuple(range(num_cubes)), tuple(range(num_pe)))
    dtype = dtype_of_size(itemsize)
    placement = place("shape", tuple(shape), dtype, dp.ours, targets, PAGE_BYTES)
    return [
        ShardSpec(shard.home.sip, shard.home.cube, shard.home.pe, shard.offset, shard.num_bytes)
        for shard in placement.shards
    ]
