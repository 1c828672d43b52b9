"""``--set``: one value on the command line."""

import pytest

from tilewright.errors import SpecError
from tilewright.machine.parse import parse_machine
from tilewright.machine.spec import CrossbarSpec


def test_values_are_set_by_their_path() -> None:
    overrides = ["cube.hbm.pseudo_channels=16", "cube.noc.bytes_per_us=512 GB/s", "name=mine: a #1"]
    spec = parse_machine("ahbm", overrides)
    assert spec.cube.hbm.pseudo_channels == 16
    assert spec.cube.noc.bytes_per_us == 512_000
    assert spec.name == "mine: a #1"  # one word, not YAML: nothing of it is cut off


def test_null_leaves_a_part_out() -> None:
    overrides = ["sip.count=1", "sip.columns=1", "sip.rows=1", "sip.io=null", "cube.ucie=null"]
    spec = parse_machine("ahbm", overrides)
    assert spec.sip.io is None
    assert spec.cube.ucie is None


@pytest.mark.parametrize("text", ['name="yes"', "name='yes'"])
def test_quotes_make_text(text: str) -> None:
    assert parse_machine("ahbm", [text]).name == "yes"


def test_lists_and_sections_are_written_in_brackets() -> None:
    overrides = ["cube.m_cpu_position_um=[1_400, 4_200]", "pe.gemm={rows: 8, hz: 2_000}"]
    spec = parse_machine("ahbm", overrides)
    assert spec.cube.m_cpu_position_um == (1_400, 4_200)
    assert (spec.pe.gemm.rows, spec.pe.gemm.hz, spec.pe.gemm.columns) == (8, 2_000, 16)


def test_of_two_values_for_one_path_the_last_counts() -> None:
    assert parse_machine("ahbm", ["sip.count=3", "sip.count=4"]).sip.count == 4


def test_a_changed_kind_keeps_the_keys_set_beside_it_in_any_order() -> None:
    overrides = ["cube.noc.radius_um=5", "cube.noc.kind=crossbar"]
    for order in (overrides, overrides[::-1]):
        assert parse_machine("ahbm-small", order).cube.noc == CrossbarSpec(radius_um=5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cube.hbm.x=5", r"^--set cube\.hbm\.x: found an unknown key, expected one of impl,"),
        ("cube.hbm.bnaks=5", r"^--set cube\.hbm\.bnaks: .*; did you mean 'banks'\?$"),
        ("cube.hbm.banks=many", r"^--set cube\.hbm\.banks: found 'many', expected a whole number"),
        ("cube.hbm.banks=0", r"^--set cube\.hbm\.banks: found 0, expected at least 1"),
        ("cube.hbm.banks=3", r"^--set cube\.hbm\.banks: found 3, expected a power of two"),
        ("cube.hbm.banks=010", r"^--set cube\.hbm\.banks: found the number 010"),
        ("cube.hbm.banks=", r"^--set cube\.hbm\.banks: found no value"),
        ("cube.hbm.banks", r"^--set: found 'cube\.hbm\.banks', expected PATH=VALUE"),
        ("=5", r"^--set: found '=5'"),
        ("a..b=5", r"^--set: found 'a\.\.b=5'"),
        ("cube=5", r"^--set cube: found 5, expected a section"),
        ("cube.pes.x=5", r"^--set cube\.pes\.x: cube\.pes: found a section, expected a whole"),
        ("extends=hbm3", r"^--set extends: found an unknown key"),
        ("name=[1", r"^--set name: found broken YAML"),
        ("name=[!x 1]", r"^--set name: 0: found the tag !x, expected no tags"),
        ("name=a\x1bb", r"^--set: found the character U\+001B in 'name=a\\x1bb', expected print"),
        ('name="a\x07b"', r"^--set: found the character U\+0007 in "),
        ("na\x1bme=a", r"^--set: found the character U\+001B in "),
        ("name=a\nb", r"^--set: found the character U\+000A in "),
        ("name=a\u2028b", r"^--set: found the character U\+2028 in "),
        ('name="a\\nb"', r"^--set name: found 'a\\nb', expected text of one line"),
        ('name="a\\x1bb"', r"^--set name: found an escape for U\+001B"),
        ("packet_bytes=100", r"^--set packet_bytes: found 100 with flit_bytes 64"),
        ("flit_bytes=100", r"^--set flit_bytes: packet_bytes: found 1024 with flit_bytes 100"),
    ],
)
def test_a_wrong_override_is_refused_with_its_own_path(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_machine("ahbm", [text])
