import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.gguf_making import tiny_metadata, tiny_tensors, write_gguf
from tilewright.errors import ModelFileError
from tilewright.models.gguf.file import open_gguf

QUANTISED = {
    "blk.0.attn_q.weight": gguf.GGMLQuantizationType.Q4_1,
    "blk.0.attn_k.weight": gguf.GGMLQuantizationType.Q8_0,
    "blk.1.ffn_up.weight": gguf.GGMLQuantizationType.F16,
    "blk.1.ffn_gate.weight": gguf.GGMLQuantizationType.BF16,
    "blk.1.ffn_down.weight": gguf.GGMLQuantizationType.Q5_0,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    return write_gguf(path, tiny_metadata(), tiny_tensors(), QUANTISED)


def test_metadata_are_those_that_the_library_reads(whole: Path) -> None:
    expected = {
        key: value.contents()
        for key, value in gguf.GGUFReader(whole).fields.items()
        if not key.startswith("GGUF.")
    }
    assert dict(open_gguf(whole).metadata) == expected


def test_tensors_are_those_that_the_library_reads_and_dequantises(whole: Path) -> None:
    file = open_gguf(whole)
    expected = gguf.GGUFReader(whole).tensors
    assert set(file.tensors) == {tensor.name for tensor in expected}
    for tensor in expected:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.array_equal(file.read(tensor.name, values.shape), values)


def test_blocks_of_four_and_eight_bits_mean_what_the_format_says(whole: Path) -> None:
    file = open_gguf(whole)
    block = file.raw("blk.0.attn_q.weight")[3]
    step, least = np.frombuffer(block[:4].tobytes(), np.float16).astype(np.float32)
    codes = np.concatenate([block[4:] & 15, block[4:] >> 4])
    values = file.read("blk.0.attn_q.weight", (32, 32))
    assert np.array_equal(values[3], step * codes + least)
    block = file.raw("blk.0.attn_k.weight")[5]
    step = np.frombuffer(block[:2].tobytes(), np.float16).astype(np.float32)
    values = file.read("blk.0.attn_k.weight", (16, 32))
    assert np.array_equal(values[5], step * block[2:].view(np.int8))


def test_a_tensor_of_another_shape_is_refused(whole: Path) -> None:
    with pytest.raises(ModelFileError, match=r"'output_norm\.weight'.*found shape \[32\].*\[64\]"):
        open_gguf(whole).read("output_norm.weight", (64,))


def test_a_missing_tensor_is_refused(whole: Path) -> None:
    with pytest.raises(ModelFileError, match=r"tensor 'blk\.9\.attn_q\.weight': found no such"):
        open_gguf(whole).read("blk.9.attn_q.weight", (32, 32))


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    tensors = tiny_tensors()
    tensors["blk.0.ffn_norm.weight"][3] = np.nan
    file = open_gguf(write_gguf(tmp_path / "nan.gguf", tiny_metadata(), tensors))
    with pytest.raises(ModelFileError, match=r"'blk\.0\.ffn_norm\.weight'.*infinite values or NaN"):
        file.read("blk.0.ffn_norm.weight", (32,))


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="found a directory, expected a GGUF file"):
        open_gguf(tmp_path)


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="found No such file or directory"):
        open_gguf(tmp_path / "none.gguf")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.gguf").touch()
    with pytest.raises(ModelFileError, match="found an empty file"):
        open_gguf(tmp_path / "empty.gguf")


# Parts of a header, to be put together wrongly.


def text(value: bytes, *, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(value) if length is None else length) + value


def pair(key: bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: bytes, axes: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    sizes = b"".join(struct.pack("<Q", size) for size in axes)
    return text(name) + struct.pack("<I", len(axes)) + sizes + struct.pack("<IQ", kind, offset)


def header(
    *parts: bytes, tensors: int = 0, pairs: int = 0, version: int = 3, magic: bytes = b"GGUF"
) -> bytes:
    return magic + struct.pack("<IQQ", version, tensors, pairs) + b"".join(parts) + bytes(64)


def wrong_headers() -> Iterator[tuple[bytes, str]]:
    huge = 2**63
    yield b"GG", "a magic number of 4 bytes where 2 are left"
    yield header(magic=b"PK\x03\x04"), r"byte 0: found b'PK"
    yield header(version=1), "found version 1, expected version 2 or 3"
    yield header(version=3 << 24), "found big-endian numbers"
    yield header(tensors=huge), f"found {huge} tensors where"
    yield header(pairs=huge), f"found {huge} metadata entries where"
    yield header(text(b"key", length=huge), pairs=1), f"found {huge} letters of a metadata key"
    yield header(pair(b"k", 8, text(b"", length=2**40)), pairs=1), "letters of the value of 'k'"
    yield header(pair(b"k", 99, b""), pairs=1), "found type 99 of 'k'"
    yield header(pair(b"k", 8, text(b"\xff\xfe")), pairs=1), "that is no UTF-8"
    yield header(pair(b"k", 9, struct.pack("<IQ", 4, huge)), pairs=1), "elements of 'k' where"
    yield header(pair(b"k", 9, struct.pack("<IQ", 8, huge)), pairs=1), "strings of 'k' where"
    yield header(pair(b"k", 9, struct.pack("<IQ", 9, 1)), pairs=1), "an array of arrays in 'k'"
    twice = pair(b"k", 4, struct.pack("<I", 1))
    yield header(twice, twice, pairs=2), "found a second 'k'"
    alignment = pair(b"general.alignment", 4, struct.pack("<I", 12))
    yield header(alignment, pairs=1), "found general.alignment 12, expected a power of two"
    yield header(tensor(b"t", ()), tensors=1), "found 0 axes of 't'"
    yield header(tensor(b"t", (1,) * 5), tensors=1), "found 5 axes of 't'"
    yield header(tensor(b"t", (4, 0)), tensors=1), r"found sizes \[4, 0\] of 't'"
    yield header(tensor(b"n" * 65, (4,)), tensors=1), "a tensor's name of 65 bytes"
    yield header(tensor(b"t", (4,), kind=77), tensors=1), "found type 77 of 't'"
    yield header(tensor(b"t", (33,), kind=8), tensors=1), "rows of whole blocks of 32"
    yield header(tensor(b"t", (4,), offset=7), tensors=1), "aligned to 32"
    yield header(tensor(b"t", (2**32, 2**32, 2**32)), tensors=1), "'t' up to byte"
    yield header(tensor(b"t", (4,), offset=2**63), tensors=1), "'t' up to byte"
    yield header(tensor(b"t", (1,)), tensor(b"t", (1,)), tensors=2), "a second tensor 't'"


@pytest.mark.parametrize(("data", "message"), list(wrong_headers()))
def test_a_hostile_header_is_refused_with_its_place(
    data: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "hostile.gguf"
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=message):
        open_gguf(path)


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(share: float, whole: Path, tmp_path: Path) -> None:
    data = whole.read_bytes()
    (tmp_path / "cut.gguf").write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ModelFileError, match=r"are left|a file that is whole"):
        open_gguf(tmp_path / "cut.gguf")


@given(st.data())
def test_a_header_with_any_byte_changed_is_read_or_refused_and_nothing_else(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 4000))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "changed.gguf"
    path.write_bytes(content)
    try:
        file = open_gguf(path)
        for name, found in file.tensors.items():
            assert file.raw(name).size == found.num_bytes
    except ModelFileError:
        pass


def test_a_file_that_is_cut_behind_our_back_is_refused_and_ends_no_process(
    whole: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(whole, tmp_path))
    file = open_gguf(path)
    os.truncate(path, 64)
    with pytest.raises(ModelFileError, match="found a file that has changed"):
        file.raw("output_norm.weight")


def test_a_device_is_no_model() -> None:
    with pytest.raises(ModelFileError, match="found a device or a pipe, expected a GGUF file"):
        open_gguf(Path("/dev/zero"))
