from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.runtime.packing import index_of
from tests.runtime.placements import StoreOwner, bits_of, draw_array, placements
from tilewright.errors import TensorError
from tilewright.runtime.placement.placement import Placement
from tilewright.runtime.tensor.array import resolve_index


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Basic indices, and arrays of integers and masks for some axes."""
    kind = draw(st.sampled_from(["ranges", "slices", "basic", "arrays", "mask"]))
    if kind == "ranges":
        return tuple(slice(*sorted(draw(st.tuples(*[st.integers(0, n)] * 2)))) for n in shape)
    if kind == "slices":
        return tuple(draw(st.slices(size)) for size in shape)
    if kind == "mask" and shape:
        return draw(hnp.arrays(np.bool_, shape))
    if kind == "basic" or 0 in shape or not shape:
        return draw(hnp.basic_indices(shape, allow_newaxis=True))
    count = draw(st.integers(1, len(shape)))
    result = draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
    arrays = draw(hnp.integer_array_indices(shape[:count], result_shape=st.just(result)))
    return (*arrays, *draw(st.sampled_from([(), (...,), (None, ...)])))


@given(data=st.data(), placement=placements(max_size=5))
def test_an_index_of_a_tensor_reads_what_it_reads_of_an_array(
    data: st.DataObject, placement: Placement
) -> None:
    owner = StoreOwner(placement.page_bytes)
    array = draw_array(data, placement.shape, placement.dtype)
    tensor = owner.tensor(placement).copy_(array)
    key = data.draw(keys(placement.shape))
    found, expected = tensor[key], array[key]
    assert np.shape(found) == np.shape(expected)
    assert bits_of(np.asarray(found)) == bits_of(np.asarray(expected))


@settings(max_examples=200)
@given(data=st.data(), placement=placements(max_size=5))
def test_an_assignment_to_a_tensor_does_what_it_does_to_an_array(
    data: st.DataObject, placement: Placement
) -> None:
    owner = StoreOwner(placement.page_bytes)
    array = draw_array(data, placement.shape, placement.dtype).copy()
    tensor = owner.tensor(placement).copy_(array)
    key = data.draw(keys(placement.shape))
    values = draw_array(data, np.shape(array[key]), placement.dtype)
    array[key] = values
    tensor[key] = values
    assert bits_of(tensor.numpy()) == bits_of(array)
    for shard in placement.shards:
        if shard.is_whole:
            assert bits_of(tensor.local(shard.home)) == bits_of(array[index_of(shard.part)])


@given(data=st.data())
def test_the_box_is_the_least_that_has_all_that_is_touched(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=5))
    key = data.draw(keys(shape))
    touched = np.zeros(shape, np.bool_)
    touched[key] = True
    selection = resolve_index("t", key, shape)
    if touched.any():
        for extent, places in zip(selection.box, touched.nonzero(), strict=True):
            assert (extent.start, extent.stop) == (places.min(), places.max() + 1)
    else:
        assert 0 in selection.box_shape


@pytest.mark.parametrize(
    ("key", "found"),
    [
        (3, "tensor 't', axis 0: found index 3, expected one from -3 to 2"),
        ((0, -5), "tensor 't', axis 1: found index -5, expected one from -4 to 3"),
        (([0, 1], [4, 0]), "tensor 't', axis 1: found index 4"),
        ((0, 0, 0), "an index of 3 axes and 0 ellipses, expected at most 2 and one"),
        ((..., ...), "an index of 0 axes and 2 ellipses"),
        (1.5, "tensor 't', axis 0: found an index of float64, expected integers, slices or masks"),
        (slice(None, None, 0), "a step that is not 0"),
        (slice("a"), "expected integers, and a step"),
        (True, "found the index True, expected integers, slices or masks"),
        (np.zeros(2, np.bool_), "tensor 't', axis 0: found a mask of 2, expected one of 3"),
        (([0, 1], [0, 1, 2]), "expected arrays that broadcast together"),
    ],
)
def test_an_index_that_means_nothing_is_refused(key: Any, found: str) -> None:
    with pytest.raises(TensorError) as caught:
        resolve_index("tensor 't'", key, (3, 4))
    assert found in str(caught.value)


def test_an_index_of_an_empty_axis_is_refused() -> None:
    with pytest.raises(TensorError, match="expected none, since the axis is empty"):
        resolve_index("t", 0, (0,))
