"""The verdict on a machine file, with what only building the machine can tell."""

from pathlib import Path

import pytest

from tilewright.errors import SpecError
from tilewright.machine.build import machine_hash
from tilewright.machine.file_check import check_machine_file
from tilewright.machine.parse import parse_machine


def test_the_verdict_names_the_machine_its_hash_and_its_source() -> None:
    record = check_machine_file("ahbm-small", ["pe.gemm.rows=8"])
    assert (record.source, record.overrides) == ("ahbm-small", ("pe.gemm.rows=8",))
    assert (record.machine, record.num_pes) == ("ahbm-small", 16)
    assert record.machine_hash == machine_hash(parse_machine("ahbm-small", ["pe.gemm.rows=8"]))
    assert record.machine_hash != check_machine_file("ahbm-small").machine_hash


def test_warnings_of_the_file_and_of_the_machine_are_both_told(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("extends: ahbm-small\nfabric: {links: 2}\ncube: {noc: {buffer_bytes: 1 KiB}}\n")
    warnings = check_machine_file(file).warnings
    assert warnings[0] == f"{file} line 2: fabric.links: has no effect, since there is one SIP"
    assert any("cube.noc.buffer_bytes" in warning for warning in warnings[1:])


def test_what_the_builder_refuses_is_shown_with_the_line_of_its_field(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("sip: {count: 4}\nfabric:\n  kind: torus\n  columns: 2\n  links: 1\n")
    with pytest.raises(SpecError, match=r"m\.yaml line 5: fabric\.links: found 1 links"):
        check_machine_file(file)


def test_what_the_builder_refuses_of_a_default_is_shown_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("address: {offset_bits: 29}\ncube: {hbm: {capacity_bytes: 256 MiB}}\n")
    with pytest.raises(SpecError, match=r"m\.yaml: pe\.tcm\.capacity_bytes: found 16777216"):
        check_machine_file(file)
