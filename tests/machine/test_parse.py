"""Mistakes in a machine file, and what their messages say."""

import pickle
from pathlib import Path

import pytest

from tilewright.errors import SpecError
from tilewright.machine.file.explain import MachineFileError
from tilewright.machine.parse import parse_machine, parse_machine_text
from tilewright.machine.spec import DotArraySpec, MachineSpec, MeshSpec, RingSpec, SystolicSpec


def test_a_misspelt_key_is_refused_with_its_line_and_path(tmp_path: Path) -> None:
    file = tmp_path / "machine.yaml"
    file.write_text("cube:\n  hbm:\n    trcd_pz: 5\n")
    with pytest.raises(
        SpecError, match=r"machine\.yaml line 3: cube\.hbm\.trcd_pz: found an unknown key"
    ):
        parse_machine(file)


def test_a_file_that_says_nothing_but_a_name_is_the_default_machine() -> None:
    assert parse_machine_text("name: ahbm") == MachineSpec()


def test_quantities_are_read_exactly_from_text_with_a_unit() -> None:
    text = """
    cube:
      noc: {bytes_per_us: 512 GB/s, router_ps: 1.25 ns, buffer_bytes: 8 KiB}
      sram: {bytes_per_us: 64 GB/s}
    pe: {tcm: {reserved_bytes: 1 KiB}}
    """
    spec = parse_machine_text(text)
    noc = spec.cube.noc
    assert (noc.bytes_per_us, noc.router_ps, noc.buffer_bytes) == (512_000, 1_250, 8_192)
    assert (spec.cube.sram.bytes_per_us, spec.pe.tcm.reserved_bytes) == (64_000, 1024)


def test_a_network_without_a_kind_is_a_mesh() -> None:
    assert parse_machine_text("cube: {noc: {rows: 8}}").cube.noc == MeshSpec(rows=8)
    assert parse_machine_text("cube: {noc: {kind: ring}}").cube.noc == RingSpec()


def test_a_gemm_unit_without_a_kind_is_a_dot_array() -> None:
    assert parse_machine_text("pe: {gemm: {depth: 8}}").pe.gemm == DotArraySpec(depth=8)
    assert parse_machine_text("pe: {gemm: {kind: systolic}}").pe.gemm == SystolicSpec()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sip: {cuont: 2}", r"sip\.cuont: found an unknown key, expected one of count, columns, "),
        ("sip: {cuont: 2}", r"did you mean 'count'\?$"),
        ("hbm: {banks: 2}", r"line 1: hbm: .*did you mean 'cube\.hbm'\?$"),
        ("cube: {hbm: {cl_clocks: 9}}", r"did you mean 'cube\.hbm\.timing\.cl_clocks'\?$"),
        ("qqq: 1", r"qqq: found an unknown key, .*; remove the key$"),
        (
            "cube:\n  noc: {kind: ring, rows: 5}",
            r"line 2: cube\.noc\.rows: .*another kind of cube\.noc has it",
        ),
        ("cube: {noc: {kind: rign}}", r"cube\.noc\.kind: found 'rign', .*mean 'ring'\?$"),
        ("cube: {noc: {kind: 5}}", r"cube\.noc\.kind: found 5, expected one of 'mesh', 'ring'"),
        ("cube: {noc: {kind: [ring]}}", r"cube\.noc\.kind: found a list of 1, expected one of"),
        (
            "pe: {gemm: {kind: systolic, depth: 4}}",
            r"pe\.gemm\.depth: found an unknown key, .*another kind of pe\.gemm has it",
        ),
        ("pe: {gemm: {kind: dot}}", r"pe\.gemm\.kind: found 'dot', .*'dot_array', 'systolic'"),
        ("cube: {noc: 5}", r"cube\.noc: found 5, expected a section"),
        ("cube: {noc: null}", r"cube\.noc: found null, expected a section"),
        ("cube: [1]", r"cube: found a list of 1, expected a section"),
        ("fabric: {kind: rign}", r"fabric\.kind: found 'rign', .*mean 'ring'\?$"),
        ("routing: yx", r"routing: found 'yx', expected one of 'xy'"),
        ("sip: {count: true}", r"sip\.count: found true, expected a whole number"),
        ("sip: {count: '3'}", r"sip\.count: found '3', expected a whole number; .*without quotes"),
        ("sip: {count: null}", r"sip\.count: found null, expected a whole number"),
        ("sip: {count: [3]}", r"sip\.count: found a list of 1, expected a whole number"),
        ("sip: {count: {a: 3}}", r"sip\.count: found a section, expected a whole number"),
        ("sip: {count: 0}", r"sip\.count: found 0, expected at least 1"),
        ("sip: {count: 9_999_999}", r"sip\.count: found 9999999, expected at most 1048576"),
        ("packet_bytes: 1 parsec", r"packet_bytes: found '1 parsec', expected one of B, KB, MB"),
        ("packet_bytes: '1024'", r"packet_bytes: found '1024', expected a number .* and a unit"),
        (f"packet_bytes: '{'1' * 5000} B'", r"packet_bytes: found '1+\.\.\., expected a number"),
        ("cube: {noc: {router_ps: 1.0001 ns}}", r"found '1\.0001 ns', expected a whole number of"),
        ("name: 5", r"name: found 5, expected text; put it in quotes"),
        ("name: ''", r"name: found '', expected text that is not empty"),
        ("cube: {m_cpu_position_um: [1]}", r"m_cpu_position_um\.1: found nothing, .*one value"),
        ("cube: {m_cpu_position_um: [1, 2, 3]}", r"found a list of 3, expected a shorter list"),
        ("cube: {m_cpu_position_um: 5}", r"m_cpu_position_um: found 5, expected a list"),
        ("cube: {m_cpu_position_um: [1, x]}", r"position_um\.1: found 'x', expected a whole"),
        ("cube: {hbm: {address_map: [rwo]}}", r"address_map\.0: found 'rwo', .*mean 'row'\?"),
        ("fabric: {parameters: {a: null}}", r"fabric\.parameters\.a: found null, expected a num"),
        ("fabric: {parameters: {a: 1}}", r"fabric\.parameters: found parameters without impl"),
    ],
)
def test_a_wrong_value_is_refused_with_path_and_remedy(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_machine_text(text)


def several() -> MachineFileError:
    text = "sip:\n  count: 0\n  cuont: 1\ncube:\n  pes: x\nname: 1\n"
    with pytest.raises(MachineFileError) as raised:
        parse_machine_text(text)
    return raised.value


def test_of_several_mistakes_the_first_line_is_told_and_the_rest_are_counted() -> None:
    error = several()
    assert error.where == "machine.yaml line 2: sip.count"
    assert error.fix == "raise it; and 3 more"


def test_all_mistakes_are_kept_in_the_order_of_their_lines() -> None:
    assert [problem.where.removeprefix("machine.yaml ") for problem in several().problems] == [
        "line 2: sip.count",
        "line 3: sip.cuont",
        "line 5: cube.pes",
        "line 6: name",
    ]
    assert several().problems[0].fix == "raise it"


def test_an_error_of_several_mistakes_survives_pickling() -> None:
    error = several()
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert list(map(str, copy.problems)) == list(map(str, error.problems))


def test_a_rule_that_a_default_breaks_is_shown_where_the_other_value_was_written() -> None:
    text = "name: x\npacket_bytes: 8 KiB\n"
    with pytest.raises(MachineFileError) as raised:
        parse_machine_text(text)
    wheres = [problem.where for problem in raised.value.problems]
    assert "machine.yaml line 2: cube.noc.buffer_bytes" in wheres
    assert "machine.yaml line 2: pe.cpu.buffer_bytes" in wheres
