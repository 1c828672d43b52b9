"""Tensors that ranks hold alike: their own, or copies that are placed as the first rank's are."""

from dataclasses import dataclass
from math import prod

from tilewright.collectives.group import Group
from tilewright.collectives.run import Buffers, lane_parts
from tilewright.errors import PlacementError
from tilewright.machine.coords import PeCoord
from tilewright.runtime.deployment import Deployments
from tilewright.runtime.placement import Targets
from tilewright.runtime.policy import DPPolicy, Split
from tilewright.runtime.tensor import Tensor

__all__ = ("Layout", "Stage", "layout_of", "stage")

SPREAD = DPPolicy(cube=Split(0), pe=Split(0))


@dataclass(frozen=True, slots=True)
class Layout:
    """How each tensor of a call lies on the PEs of its rank."""

    shape: tuple[int, ...]
    policy: DPPolicy
    parts: tuple[tuple[int, int, int], ...] | None  # as `lane_parts`; None: of the policy, anywhere


def layout_of(group: Group, rank: int, tensors: tuple[Tensor, ...]) -> Layout:
    """That of all tensors, if they lie alike in shards of the rank; else a flat one for copies."""
    first = tensors[0]
    flat = Layout((first.numel(),), SPREAD, None)
    layouts = set()
    for tensor in tensors:
        if tensor.is_host or not any(map(tensor.placement.has_shard, group.ranks[rank])):
            return flat
        try:
            parts = lane_parts(group, rank, tensor)
        except PlacementError:  # blocks of bytes have no shape
            return flat
        layouts.add(Layout(tensor.shape, tensor.placement.policy, parts))
    return layouts.pop() if len(layouts) == 1 else flat


@dataclass(frozen=True, slots=True)
class Stage:
    """Buffers to run on, and what has to be copied back at the end."""

    buffers: Buffers
    copies: tuple[tuple[Tensor, Tensor], ...] = ()  # to the first from the second

    @property
    def is_in_place(self) -> bool:
        return not self.copies

    def finish(self) -> None:
        for target, copy in self.copies:
            target.copy_(copy.numpy().reshape(target.shape))
            copy.free()


def stage(
    tensors: Deployments, group: Group, rank: int, buffers: Buffers, mine: Layout, agreed: Layout
) -> Stage:
    """The rank's own tensors where they lie as agreed; else copies that do, through the host."""
    if agreed.parts is not None and mine.parts == agreed.parts:
        return Stage(buffers)
    targets = _targets(group.ranks[rank])
    made: dict[Tensor, Tensor] = {}

    def copy_of(tensor: Tensor | None, *, is_read: bool) -> Tensor | None:
        if tensor is None:
            return None
        if tensor not in made:
            name = f"{tensor.name} of rank {group.world_ranks[rank]}"
            made[tensor] = tensors.empty(
                _shape(agreed, tensor), tensor.dtype, dp=agreed.policy, name=name, targets=targets
            )
        if is_read:
            made[tensor].copy_(tensor.numpy().reshape(made[tensor].shape))
        return made[tensor]

    sources = tuple(copy_of(tensor, is_read=True) for tensor in buffers.sources)
    results = tuple(copy_of(tensor, is_read=False) for tensor in buffers.targets)
    written = {tensor for tensor in buffers.targets if tensor is not None}
    copies = tuple((tensor, made[tensor]) for tensor in made if tensor in written)
    return Stage(Buffers(sources, results), copies)


def _shape(agreed: Layout, tensor: Tensor) -> tuple[int, ...]:
    return agreed.shape if prod(agreed.shape) == tensor.numel() else (tensor.numel(),)


def _targets(pes: tuple[PeCoord, ...]) -> Targets:
    """The PEs of a rank: a SIP's, or one."""
    return Targets(
        tuple(sorted({pe.sip for pe in pes})),
        tuple(sorted({pe.cube for pe in pes})),
        tuple(sorted({pe.pe for pe in pes})),
    )
