"""Keys that somebody wrote and that change nothing, since another key switches them off."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tilewright.machine.file.document import MachineDocument
from tilewright.machine.file.explain import where_text
from tilewright.machine.file.yaml_text import Section
from tilewright.machine.spec import CrossbarSpec, MachineSpec


class _Rule(NamedTuple):
    """Below these paths nothing has an effect if the test holds."""

    paths: tuple[str, ...]
    is_off: Callable[[MachineSpec], bool]
    reason: str


_RULES = (
    _Rule(
        ("cube.noc.bytes_per_us",),
        lambda spec: isinstance(spec.cube.noc, CrossbarSpec) and spec.cube.ucie is None,
        "cube.noc is a crossbar and cube.ucie is null",
    ),
    _Rule(("fabric",), lambda spec: spec.sip.count == 1, "there is one SIP"),
    _Rule(
        ("fabric.switch_ps",),
        lambda spec: spec.fabric.kind != "switch",
        "fabric.kind is not switch",
    ),
    _Rule(
        ("cube.hbm.simple_latency_ps", "cube.hbm.simple_efficiency_percent"),
        lambda spec: spec.cube.hbm.model != "simple",
        "cube.hbm.model is not simple",
    ),
    _Rule(
        (
            "cube.hbm.refresh",
            "cube.hbm.read_queue_bursts",
            "cube.hbm.write_queue_bursts",
            "cube.hbm.drain_high_bursts",
            "cube.hbm.drain_low_bursts",
        ),
        lambda spec: spec.cube.hbm.model == "simple",
        "cube.hbm.model is simple",
    ),
    _Rule(
        ("cube.hbm.refresh.all_bank_ps",),
        lambda spec: spec.cube.hbm.refresh.kind != "all_bank",
        "cube.hbm.refresh.kind is not all_bank",
    ),
    _Rule(
        ("cube.hbm.refresh.per_bank_ps",),
        lambda spec: spec.cube.hbm.refresh.kind != "per_bank",
        "cube.hbm.refresh.kind is not per_bank",
    ),
    _Rule(
        ("cube.hbm.refresh.interval_ps", "cube.hbm.refresh.phase_ps"),
        lambda spec: spec.cube.hbm.refresh.kind == "none",
        "cube.hbm.refresh.kind is none",
    ),
)


def unused_keys(document: MachineDocument, spec: MachineSpec) -> tuple[str, ...]:
    """A warning for each such key, with its place, in the order of the schema's rules."""
    warnings: dict[str, str] = {}
    for rule in _RULES:
        if rule.is_off(spec):
            for path in rule.paths:
                for key in _written_below(document, path):
                    place = document.nearest_place(key.split("."))
                    text = f"{where_text(place, key)}: has no effect, since {rule.reason}"
                    warnings.setdefault(key, text)
    return tuple(warnings.values())


def _written_below(document: MachineDocument, path: str) -> Iterator[str]:
    entry = document.entry_of(path.split("."))
    if entry is None:
        return
    if isinstance(entry.value, Section):
        for key in entry.value.entries:
            yield from _written_below(document, f"{path}.{key}")
    else:
        yield path
