"""The log of effects, with somebody who hears when an access has been served."""

from collections.abc import Callable, Sequence

from tilewright.engine.core import NO_EFFECT
from tilewright.executor.effect import EffectLog

Hear = Callable[[int], None]
"""Is told the time."""


class _Nothing:
    """The effect of an access that only takes time."""

    def apply(self) -> bool:
        """Leave memory as it is."""
        return False


NOTHING = _Nothing()


class WatchedEffectLog(EffectLog):
    """Applies effects as ever, and then tells who watches them, in the order of events."""

    def __init__(self) -> None:
        super().__init__()
        self.at_ps = 0  # of the event that is being applied
        self._watched: dict[int, tuple[int, Hear]] = {}  # by effect: parts that are left, and who

    def watch(self, effect: int, num_parts: int, hear: Hear, owner: object) -> int:
        """Hear when all parts of an effect were served; an access without one gets one."""
        number = self.add(NOTHING, num_parts, owner) if effect == NO_EFFECT else effect
        self._watched[number] = num_parts, hear
        return number

    def apply(self, served: Sequence[tuple[int, int]]) -> None:
        for at_ps, number in served:
            self.at_ps = at_ps
            super().apply(((at_ps, number),))
            watched = self._watched.get(number)
            if watched is None:
                continue
            num_parts, hear = watched
            if num_parts > 1:
                self._watched[number] = num_parts - 1, hear
            else:
                del self._watched[number]
                hear(at_ps)
