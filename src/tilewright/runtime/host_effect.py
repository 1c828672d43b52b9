"""Effects on memories and page tables that the host has asked for; an error does not lose them."""

from dataclasses import dataclass, field

from tilewright.executor.effect import Effect, EffectLog


@dataclass(slots=True)
class _HostEffect:
    """An effect that removes itself from those that are under way when it happens."""

    effect: Effect
    under_way: "dict[int, _HostEffect]"
    number: int = -1

    def apply(self) -> bool | None:
        del self.under_way[self.number]
        return self.effect.apply()


@dataclass(slots=True)
class HostEffects:
    """The effects that are under way, by their numbers in the log of a device."""

    _under_way: dict[int, _HostEffect] = field(default_factory=dict)

    def add(self, log: EffectLog, effect: Effect, what: str) -> int:
        """Add an effect to the log; return the number that its task reports once served."""
        host_effect = _HostEffect(effect, self._under_way)
        host_effect.number = log.add(host_effect, 1, what)
        self._under_way[host_effect.number] = host_effect
        return host_effect.number

    def apply_all(self, log: EffectLog, at_ps: int) -> None:
        """Let all that is under way happen now, in the order in which it was asked for."""
        log.apply([(at_ps, number) for number in sorted(self._under_way)])
