"""Ends of a flow that say more than which pages are read."""

from collections.abc import Sequence
from typing import Any

from tilewright.attention.abs.op import vOp
from tilewright.attention.abs.output import BranchSpec, OutputSlot


class Attend(vOp):
    """``Attend()(selection, o)``: attention over the selected pages."""

    def profile(self, selection: Any, o: Any, ctx: Any = None) -> OutputSlot:  # type: ignore[override]
        del ctx
        return self._end(o, [BranchSpec(selection)])

    def _end(self, o: Any, branches: Sequence[BranchSpec]) -> OutputSlot:
        if not isinstance(o, OutputSlot):
            raise self._error(f"an o of type {type(o).__name__}", "the o of the method", "pass o")
        o.combine(branches)
        return o


class ZoneEstimate(Attend):
    """``ZoneEstimate()(selection, logits, values, o)``: pages that are not selected enter by their
    estimates; see BranchSpec for the shapes.
    """

    def profile(  # type: ignore[override]
        self, selection: Any, logits: Any, values: Any, o: Any, ctx: Any = None
    ) -> OutputSlot:
        del ctx
        return self._end(o, [BranchSpec(selection, logits=logits, values=values)])


class AttendBranches(Attend):
    """``AttendBranches()([BranchSpec(...), ...], o)``: a sum of attentions, each with its gate."""

    def profile(  # type: ignore[override]
        self, branches: Sequence[BranchSpec], o: Any, ctx: Any = None
    ) -> OutputSlot:
        del ctx
        return self._end(o, branches)
