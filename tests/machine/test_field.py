"""Fields of machines by their paths, against machines with other values of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tilewright.machine import Machine, build_machine, list_presets, parse_machine
from tilewright.machine.field import flat_fields, latency_fields, rate_field, spec_of_fields


@pytest.mark.parametrize("preset", list_presets())
def test_a_machine_is_what_its_fields_say(preset: str) -> None:
    spec = parse_machine(preset)
    assert spec_of_fields(flat_fields(spec)) == spec


@pytest.mark.parametrize(
    "overrides",
    [
        ("sip.io=null", "sip.count=1", "sip.columns=1", "sip.rows=1", "cube.ucie=null"),
        ("cube.noc.kind=ring",),
        ("cube.noc.kind=crossbar",),
        ("pe.gemm.kind=systolic",),
        ("cube.hbm.model=simple", "cube.hbm.refresh.kind=none"),
    ],
)
def test_sections_that_are_absent_or_of_another_kind_stay_so(overrides: tuple[str, ...]) -> None:
    spec = parse_machine("crossbar-chip" if "crossbar" in str(overrides) else "ahbm", overrides)
    assert spec_of_fields(flat_fields(spec)) == spec


@given(value=st.integers(1, 10**7))
def test_a_field_is_named_as_set_names_it(value: int) -> None:
    path = "fabric.latency_ps"
    changed = {**flat_fields(parse_machine("ahbm")), path: value}
    assert spec_of_fields(changed) == parse_machine("ahbm", (f"{path}={value}",))


def test_a_value_that_no_machine_may_have_is_refused() -> None:
    fields = flat_fields(parse_machine("ahbm"))
    with pytest.raises(ValidationError, match="lanes"):
        spec_of_fields({**fields, "host.pcie.lanes": 32})
    with pytest.raises(ValidationError, match="no_such_field"):
        spec_of_fields({**fields, "pe.no_such_field": 1})


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
