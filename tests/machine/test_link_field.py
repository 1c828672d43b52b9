"""The fields that set a link's rate and latency, against machines with other values of them."""

import pytest

from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.machine.field import flat_fields
from tilewright.machine.link_field import latency_fields, rate_field

Described = tuple[str, ...]  # a preset and what is set on it
MACHINES: list[Described] = [
    ("ahbm-small", "sip.count=2", "sip.rows=1"),
    ("ahbm-small", "sip.count=2", "sip.rows=1", "sip.columns=1", "fabric.kind=ring"),
    ("crossbar-chip", "cube.pes=8"),
]
every_machine = pytest.mark.parametrize("described", MACHINES, ids=lambda each: " ".join(each))


def machine_of(described: Described, *changes: str) -> Machine:
    preset, *overrides = described
    return build_machine(parse_machine(preset, (*overrides, *changes)))


@every_machine
def test_the_parts_of_a_latency_add_up_on_every_link(described: Described) -> None:
    machine = machine_of(described)
    for number, link in enumerate(machine.links):
        parts = dict(latency_fields(machine, number))
        assert sum(parts.values()) == link.latency_ps, machine.link_name(number)


@every_machine
def test_the_named_field_changes_the_rate_of_its_links_and_of_no_others(
    described: Described,
) -> None:
    machine = machine_of(described)
    fields = [rate_field(machine, number) for number in range(len(machine.links))]
    values = flat_fields(machine.spec)
    for field in sorted(set(fields)):
        lower = int(str(values[field])) // 2
        changed = machine_of(described, f"{field}={lower}")
        for named, before, after in zip(fields, machine.links, changed.links, strict=True):
            assert (after.bytes_per_us != before.bytes_per_us) == (named == field), field


@every_machine
def test_a_halved_latency_field_takes_half_of_its_parts_away(described: Described) -> None:
    machine = machine_of(described)
    parts = [dict(latency_fields(machine, number)) for number in range(len(machine.links))]
    values = flat_fields(machine.spec)
    for field in sorted({field for each in parts for field in each} - {"ps_per_mm"}):
        value = int(str(values[field]))
        changed = machine_of(described, f"{field}={value // 2}")
        for each, before, after in zip(parts, machine.links, changed.links, strict=True):
            assert before.latency_ps - after.latency_ps == each.get(field, 0) // 2, field
