import copy
import pickle

import ml_dtypes
import numpy as np
import pytest
import torch
import triton.language as triton_language  # type: ignore[import-untyped]

from tilewright.errors import KernelTypeError
from tilewright.language.dtype import (
    DTYPES,
    DType,
    bfloat16,
    dtype_of,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int1,
    int4,
    int8,
    int32,
    uint16,
)
from tilewright.units import DTYPE_BITS

IN_TRITON = tuple(dtype for dtype in DTYPES if dtype is not int4)
PREDICATES = tuple(sorted(name for name in dir(DType) if name.startswith("is_")))


@pytest.mark.parametrize("dtype", IN_TRITON, ids=str)
def test_a_dtype_answers_as_triton_does(dtype: DType) -> None:
    theirs = getattr(triton_language, dtype.language_name)
    assert str(theirs) == dtype.name
    assert theirs.primitive_bitwidth == dtype.primitive_bitwidth
    assert theirs.itemsize == dtype.itemsize
    assert theirs.kind().value == dtype.kind()
    for predicate in PREDICATES:
        if predicate != "is_int4":
            assert getattr(theirs, predicate)() == getattr(dtype, predicate)(), predicate
    if dtype.is_floating():
        assert theirs.fp_mantissa_width == dtype.fp_mantissa_width
    else:
        assert theirs.int_bitwidth == dtype.int_bitwidth
        assert theirs.int_signedness.name == dtype.int_signedness.name
        assert theirs.get_int_max_value() == dtype.get_int_max_value()
        assert theirs.get_int_min_value() == dtype.get_int_min_value()


def test_the_range_of_int4_is_that_of_four_bits() -> None:
    assert (int4.get_int_min_value(), int4.get_int_max_value()) == (-8, 7)
    info = ml_dtypes.iinfo(int4.storage)  # type: ignore[no-untyped-call]
    assert (info.min, info.max) == (-8, 7)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_device_knows_every_dtype(dtype: DType) -> None:
    assert dtype.bits == DTYPE_BITS[dtype.device_name]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_spelling_of_a_dtype_leads_to_the_same_object(dtype: DType) -> None:
    spellings = (dtype, dtype.name, dtype.language_name, dtype.device_name)
    for source in (*spellings, dtype.storage, dtype.storage.type):
        assert dtype_of(source) is dtype


@pytest.mark.parametrize("dtype", IN_TRITON, ids=str)
def test_dtypes_of_torch_and_triton_are_found_by_name(dtype: DType) -> None:
    assert dtype_of(getattr(triton_language, dtype.language_name)) is dtype
    assert dtype_of(getattr(torch, dtype.storage.name)) is dtype


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_of_a_dtype_are_the_dtype(dtype: DType) -> None:
    assert copy.deepcopy(dtype) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype


@pytest.mark.parametrize("dtype", [float16, bfloat16, float8e4nv, float8e5], ids=str)
def test_narrow_floats_compute_in_float32(dtype: DType) -> None:
    assert dtype.compute == np.float32
    assert float32.compute == np.float32
    assert float64.compute == np.float64


@pytest.mark.parametrize("source", ["float7", np.complex64, float, 4, None, torch.complex64])
def test_what_is_no_dtype_is_refused_with_the_names_there_are(source: object) -> None:
    with pytest.raises(KernelTypeError, match=r"load: found .*expected one of float64, float32"):
        dtype_of(source, "load")


def test_a_float_has_no_integer_range() -> None:
    with pytest.raises(KernelTypeError, match=r"get_int_max|int_bitwidth asked of tl\.float32"):
        float32.get_int_max_value()


def test_bits_in_memory_and_primitive_bits_differ_for_bool_only() -> None:
    assert [dtype for dtype in DTYPES if dtype.bits != dtype.primitive_bitwidth] == [int1]
    assert (int1.bits, int8.bits, int32.bits, uint16.bits, int4.bits) == (8, 8, 32, 16, 4)
