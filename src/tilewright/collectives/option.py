"""What a file, a process group or a call says of algorithm and rings, by the keys of ``ccl.yaml``.

What nobody says is chosen for the call: slots that take its messages, as many as are under way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, TypedDict

from tilewright.device.ipcq import Backpressure, RingKind, RingSpec
from tilewright.errors import CollectiveError


class RingKeys(TypedDict, total=False):
    """Keywords of functions that install or use rings."""

    buffer_kind: RingKind | str
    backpressure: Backpressure | str
    n_slots: int
    slot_size: int
    ipcq_credit_size_bytes: int


class CallKeys(RingKeys, total=False):
    """Keywords of a collective."""

    algorithm: str


@dataclass(frozen=True, slots=True)
class RingOptions:
    """None: not said here."""

    buffer_kind: RingKind | None = None
    backpressure: Backpressure | None = None
    n_slots: int | None = None
    slot_size: int | None = None
    ipcq_credit_size_bytes: int | None = None

    def over(self, base: "RingOptions") -> "RingOptions":
        """What is said here, and else there.

        >>> RingOptions(n_slots=8).over(RingOptions(n_slots=2, slot_size=512)).slot_size
        512
        """
        said = {name: getattr(self, name) for name in RING_KEYS}
        return RingOptions(
            **{
                name: getattr(base, name) if value is None else value
                for name, value in said.items()
            }
        )

    def spec(self, least: RingSpec | None = None) -> RingSpec:
        """Rings as they are said, and else as ``least`` has them."""
        base = least or RingSpec()
        return RingSpec(
            self.buffer_kind or base.kind,
            self.n_slots or base.slots,
            self.slot_size or base.slot_bytes,
            self.backpressure or base.backpressure,
            self.ipcq_credit_size_bytes or base.token_bytes,
        )


NOTHING_SAID = RingOptions()
RING_KEYS = tuple(each.name for each in fields(RingOptions))


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What one call says; all its ranks must say the same."""

    algorithm: str | None = None
    ring: RingOptions = NOTHING_SAID

    def __str__(self) -> str:
        ring = {name: getattr(self.ring, name) for name in RING_KEYS}
        said = {"algorithm": self.algorithm, **ring}
        return ", ".join(f"{name}={_plain(value)}" for name, value in said.items() if value)


NO_OPTIONS = CallOptions()


def parse_call(where: str, said: Mapping[str, Any]) -> CallOptions:
    """Keywords of a call; what is not a key or not one of its values is refused."""
    ring = {name: value for name, value in said.items() if name != "algorithm"}
    return CallOptions(said.get("algorithm"), parse_ring(where, ring, ("algorithm", *RING_KEYS)))


def parse_ring(
    where: str, said: Mapping[str, Any], known: tuple[str, ...] = RING_KEYS
) -> RingOptions:
    """Keywords of rings; None is as if the key were left out."""
    for name in said:
        if name not in RING_KEYS:
            expected = f"one of {', '.join(known)}"
            raise CollectiveError(where, f"the option {name!r}", expected, "correct or remove it")
    kinds: dict[str, type[Enum]] = {"buffer_kind": RingKind, "backpressure": Backpressure}
    values: dict[str, Any] = {
        name: _choice(where, name, kinds[name], value)
        if name in kinds
        else _count(where, name, value)
        for name, value in said.items()
        if value is not None
    }
    return RingOptions(**values)


def _choice(where: str, name: str, kind: type[Enum], value: Any) -> Any:
    words = [each.value for each in kind]
    if isinstance(value, kind):
        return value
    if value not in words:
        expected = f"one of {', '.join(words)}"
        raise CollectiveError(where, f"{name}={value!r}", expected, "name one of these")
    return kind(value)


def _count(where: str, name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        expected = "a whole number from 1 up"
        raise CollectiveError(where, f"{name}={value!r}", expected, "correct it")
    return value


def _plain(value: object) -> object:
    return value.value if isinstance(value, Enum) else value
