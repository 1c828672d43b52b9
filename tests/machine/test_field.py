"""Fields of machines by their paths: as many ways back as there are ways there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tilewright.machine import list_presets, parse_machine
from tilewright.machine.field import flat_fields, spec_of_fields


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
