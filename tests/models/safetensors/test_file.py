"""Headers of safetensors files: accepted and refused as by the library of the format."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open

from tests.fuzz.generator import random_of
from tests.fuzz.mutation import mutated_bytes, mutated_json
from tilewright.errors import ModelFileError
from tilewright.models.safetensors.file import BITS, read_header
from tilewright.models.weight_file import open_weight_file

HEADER: dict[str, Any] = {
    "__metadata__": {"format": "pt"},
    "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    "b": {"dtype": "BF16", "shape": [], "data_offsets": [24, 26]},
    "c": {"dtype": "U8", "shape": [0, 5], "data_offsets": [26, 26]},
    "d": {"dtype": "BOOL", "shape": [3], "data_offsets": [26, 29]},
}
NUM_BYTES = 29


def is_read(file: Path) -> bool:
    try:
        read_header(open_weight_file(file, "a model"))
    except ModelFileError:
        return False
    return True


def refusal_of_library(file: Path) -> str | None:
    try:
        safe_open(file, framework="numpy")
    except SafetensorError as error:
        return str(error)
    return None


def write(file: Path, head: bytes, num_bytes: int = NUM_BYTES) -> Path:
    file.write_bytes(len(head).to_bytes(8, "little") + head + bytes(num_bytes))
    return file


def test_entries_have_types_shapes_and_places(tmp_path: Path) -> None:
    head = json.dumps(HEADER).encode()
    found = read_header(open_weight_file(write(tmp_path / "m", head), "a model"))
    start = 8 + len(head)
    assert {name: (each.kind, each.shape, each.offset) for name, each in found.items()} == {
        "a": ("F32", (2, 3), start),
        "b": ("BF16", (), start + 24),
        "c": ("U8", (0, 5), start + 26),
        "d": ("BOOL", (3,), start + 26),
    }


@pytest.mark.parametrize("dtype", BITS)
def test_every_type_has_the_bits_that_the_library_gives_it(tmp_path: Path, dtype: str) -> None:
    size = BITS[dtype]  # eight elements
    entry = {"dtype": dtype, "shape": [8], "data_offsets": [0, size]}
    head = json.dumps({"x": entry}).encode()
    refusal = refusal_of_library(write(tmp_path / "right", head, size))
    if refusal is not None:  # older ones know fewer types
        assert "unknown variant" in refusal or refusal.endswith(": InvalidHeaderDeserialization")
    assert is_read(tmp_path / "right")
    assert refusal_of_library(write(tmp_path / "wrong", head, size + 1)) is not None
    assert not is_read(tmp_path / "wrong")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("headers") / "model.safetensors"


@given(index=st.integers(0, 2**32))
def test_a_changed_header_is_refused_if_and_only_if_the_library_refuses_it(
    file: Path, index: int
) -> None:
    rng = random_of(0, "header", index)
    head = json.dumps(mutated_json(rng, HEADER)).encode("utf-8", "surrogatepass")
    if rng.random() < 0.3:
        head = mutated_bytes(rng, head)
    write(file, head + b" " * rng.randrange(3))
    assert is_read(file) == (refusal_of_library(file) is None)
