"""Whatever stands in a file: it is a machine or a SpecError, and nothing else."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilewright.errors import SpecError
from tilewright.machine.file.schema import is_path
from tilewright.machine.parse import parse_machine, parse_machine_text
from tilewright.machine.presets import list_presets, preset_text
from tilewright.machine.spec import MachineSpec


def outcome(text: str, overrides: tuple[str, ...] = ()) -> MachineSpec | SpecError:
    result = attempt(lambda: parse_machine_text(text, overrides=overrides))
    if isinstance(result, SpecError):
        assert all(result.args[:4]), result.args
        assert str(result).encode()
    return result


def attempt(parse: Callable[[], MachineSpec]) -> MachineSpec | SpecError:
    try:
        return parse()
    except SpecError as error:
        return error


KEYS = (
    "cube hbm noc kind mesh ring crossbar sip io pe gemm fabric columns count address name extends "
    "parameters packet_bytes buffer_bytes timing refresh hole_rows m_cpu_position_um ucie null"
)
PIECES = [
    *KEYS.split(" "),
    *("a", "1", "0", "-1", "1.5", "12 ns", "64 KiB", "128 GB/s", "true", "yes", "~", "010", "1:30"),
    *(": ", ":", ", ", "\n", "\n  ", "\n    ", "- ", "[", "]", "{", "}", '"', "'", "|", ">", "#"),
    *("&a ", "*a", "!x ", "!!int ", "<<", "? ", "---", "...", "%", "@", "`", "\\", "\t", "\r", " "),
    *("\u2028", "\ufeff", "\x00", "\x7f", "é", "😀"),
]
yaml_like = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@given(st.text(max_size=60))
def test_any_text_is_a_machine_or_a_spec_error(text: str) -> None:
    outcome(text)


@settings(max_examples=300)
@given(yaml_like)
def test_text_that_looks_like_yaml_is_a_machine_or_a_spec_error(text: str) -> None:
    outcome(text)


@settings(max_examples=300)
@given(yaml_like)
def test_a_section_of_anything_is_a_machine_or_a_spec_error(text: str) -> None:
    outcome("cube: {noc: {" + text + "}}")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=80))
def test_any_bytes_are_a_machine_or_a_spec_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "machine.yaml"
    file.write_bytes(content)
    result = attempt(lambda: parse_machine(file))
    assert isinstance(result, MachineSpec) or str(file) in result.where


@st.composite
def mutated_presets(draw: st.DrawFn) -> str:
    """A preset in which pieces were put in, taken out or put twice."""
    text = draw(st.sampled_from(list_presets()).map(preset_text))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 20)))
        piece = draw(st.sampled_from(PIECES) | st.just(text[start:end] * 2))
        text = text[:start] + piece + text[end:]
    return text


@settings(max_examples=200)
@given(mutated_presets())
def test_a_damaged_preset_is_a_machine_or_a_spec_error(text: str) -> None:
    outcome(text)


leaves = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.sampled_from(PIECES)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(PIECES), inner, max_size=3)
    ),
    max_leaves=6,
)
PATHS = [
    "name routing packet_bytes sip sip.io sip.count fabric.kind fabric.columns cube cube.noc",
    "cube.noc.kind cube.noc.rows cube.hbm cube.hbm.address_map cube.hbm.timing.clock_ps cube.ucie",
    "cube.m_cpu_position_um pe.gemm.impl pe.gemm.parameters pe.gemm.parameters.x address.die_bits",
]


@settings(max_examples=300)
@given(st.sampled_from(" ".join(PATHS).split(" ")), values)
def test_any_value_in_any_place_is_a_machine_or_an_error_that_names_a_place(
    path: str, value: object
) -> None:
    result = outcome("name: x", (f"{path}={as_flow(value)}",))
    if isinstance(result, SpecError):
        assert result.where.startswith("--set")


def as_flow(value: object) -> str:
    """Flow YAML; text stays bare, so that it may mean anything."""
    match value:
        case dict():
            return "{" + ", ".join(f"{key}: {as_flow(one)}" for key, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(as_flow, value)) + "]"
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case _:
            return str(value)


def schema_paths(spec: object, prefix: str = "") -> list[str]:
    fields = getattr(type(spec), "model_fields", {})
    found = [prefix + name for name in fields]
    return found + [
        path for name in fields for path in schema_paths(getattr(spec, name), f"{prefix}{name}.")
    ]


@pytest.mark.parametrize("path", schema_paths(MachineSpec()))
def test_every_key_of_the_schema_refuses_a_list_of_sections_with_its_own_path(path: str) -> None:
    assert is_path(path)
    with pytest.raises(SpecError, match=rf"^--set {re.escape(path)}:"):
        parse_machine("ahbm", [f"{path}=[{{a: b}}]"])
