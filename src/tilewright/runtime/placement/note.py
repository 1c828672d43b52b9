"""Notes for people: what happened that is as asked for, and hardly what was meant."""

from collections.abc import Iterable

from tilewright.machine.node import place_name
from tilewright.runtime.placement.placement import Placement, Targets
from tilewright.runtime.placement.policy import LayoutWord


class Notes(list[str]):
    """Texts in the order in which they came, each once, however often a program repeats itself."""

    def append(self, text: str) -> None:
        """Add a text, unless it is there."""
        if text not in self:
            super().append(text)

    def extend(self, texts: Iterable[str]) -> None:
        """Add those of the texts that are not there."""
        for text in texts:
            self.append(text)


MAX_NAMES = 4


class OneRowNote:
    """One line that names the tensors of one axis which ``row_wise`` has not divided.

    Such a tensor counts as (1, n). So one unit of a level that divides rows has all of it, and the
    other units have nothing. The line stands in ``notes`` and grows with every such tensor.
    """

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes
        self._names: list[str] = []  # the first of them
        self._num_tensors = 0
        self._homes: dict[str, None] = {}  # where they lie, in order
        self._line = ""

    def add(self, placement: Placement, targets: Targets) -> None:
        """Name a tensor if it is such a one."""
        if len(placement.shape) != 1 or not placement.shards or not _divides(placement, targets):
            return
        homes = placement.homes
        where = place_name(homes[0]) if len(homes) == 1 else f"{len(homes)} PEs each"
        self._num_tensors += 1
        if len(self._names) < MAX_NAMES:
            self._names.append(placement.name)
        self._homes[where] = None
        if self._line in self._notes:
            self._notes.remove(self._line)
        self._line = self._text()
        self._notes.append(self._line)

    def _text(self) -> str:
        names = ", ".join(map(repr, self._names))
        more = self._num_tensors - len(self._names)
        who = f"tensor {names} has" if self._num_tensors == 1 else f"tensors {names} have"
        if more > 0:
            who = f"tensors {names} and {more} more have"
        where = " and ".join(self._homes)
        return (
            f"{who} one axis, which counts as one row: 'row_wise' does not divide it, so it lies "
            f"on {where}; 'column_wise' divides it"
        )


def _divides(placement: Placement, targets: Targets) -> bool:
    """Return whether a level of the policy has several units to divide rows among."""
    all_units = (targets.sips, targets.cubes, targets.pes)
    return any(
        level.layout is LayoutWord.ROW_WISE and (level.num_units or len(units)) > 1
        for level, units in zip(placement.policy.levels, all_units, strict=True)
    )
