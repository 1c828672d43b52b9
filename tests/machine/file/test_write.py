"""Every machine has a file, and reading it gives the machine."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.machine.shapes import machines
from tilewright.machine.file.write import machine_file_text
from tilewright.machine.parse import parse_machine_text
from tilewright.machine.spec import (
    FabricSpec,
    HbmSpec,
    MachineSpec,
    MeshSpec,
    PeSpec,
    RingSpec,
    SystolicSpec,
)


@settings(max_examples=30)
@given(machines(most_sips=6, most_cubes=4, most_pes=12))
def test_the_machine_file_of_any_machine_reads_back_as_the_same_machine(spec: MachineSpec) -> None:
    assert parse_machine_text(machine_file_text(spec)) == spec


PRINTABLE = st.text(
    st.characters(
        codec="utf-8",
        exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn"],
        exclude_characters="\ufeff",
    ),
    min_size=1,
    max_size=80,
)
AWKWARD = st.sampled_from(
    ["yes", "null", "1e5", "010", "1:30", "- a", "a: b", "a #b", "~", '"', "<<"]
)


@settings(max_examples=40)
@given(name=PRINTABLE | AWKWARD, description=PRINTABLE | AWKWARD)
def test_any_text_reads_back_from_the_machine_file(name: str, description: str) -> None:
    spec = MachineSpec(name=name, description=description)
    assert parse_machine_text(machine_file_text(spec)) == spec


@settings(max_examples=30)
@given(
    capacity_units=st.integers(4, 2**10),
    latency_ps=st.integers(0, 2**40),
    bytes_per_us=st.integers(1, 10**9),
)
def test_figures_that_no_unit_fits_stay_exact(
    capacity_units: int, latency_ps: int, bytes_per_us: int
) -> None:
    spec = MachineSpec(
        fabric=FabricSpec(latency_ps=latency_ps),
        cube=MachineSpec().cube.model_copy(
            update={
                "hbm": HbmSpec(capacity_bytes=capacity_units * 2**21),
                "noc": MeshSpec(bytes_per_us=bytes_per_us),
            }
        ),
    )
    assert parse_machine_text(machine_file_text(spec)) == spec


def test_a_block_of_the_user_is_kept() -> None:
    section = MachineSpec().cube.sram.model_copy(
        update={"impl": "mine.block:Sram", "parameters": {"a b": "yes", "n": 3, "on": True}}
    )
    cube = MachineSpec().cube.model_copy(update={"sram": section})
    text = machine_file_text(MachineSpec().model_copy(update={"cube": cube}))
    assert '    impl: "mine.block:Sram"' in text
    assert '    parameters: {a b: "yes", n: 3, "on": true}' in text


def test_the_kind_of_a_section_comes_first() -> None:
    spec = MachineSpec(pe=PeSpec(gemm=SystolicSpec()))
    cube = spec.cube.model_copy(update={"noc": RingSpec()})
    lines = machine_file_text(spec.model_copy(update={"cube": cube})).splitlines()
    for section, kind in (("  noc:", "kind: ring "), ("  gemm:", "kind: systolic ")):
        assert lines[lines.index(section) + 1].strip().startswith(kind)
