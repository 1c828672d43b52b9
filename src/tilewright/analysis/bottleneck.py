"""The bottleneck of a run."""

from collections.abc import Sequence

from tilewright.analysis.usage import UsedBlock
from tilewright.records import Bottleneck, RunParts


def bottleneck_of(parts: RunParts, blocks: Sequence[UsedBlock]) -> Bottleneck | None:
    """Return whatever had the greatest share, of equal ones a block; None if no time passed."""
    total_ps = parts.total_ps
    if not total_ps:
        return None
    part, part_ps = max(parts.by_name().items(), key=lambda item: item[1])
    share = part_ps / total_ps
    busiest = max(blocks, key=lambda block: block.share, default=None)
    if busiest is not None and busiest.share >= share:
        return Bottleneck(kind=busiest.kind, name=busiest.name, share=busiest.share)
    return Bottleneck(kind="part", name=part, share=share)
