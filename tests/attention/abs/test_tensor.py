import numpy as np
import pytest
import torch

from tilewright.attention.abs import FORMAT, Parameter, as_vtensor, vTensor
from tilewright.attention.graph import DType
from tilewright.errors import FlowInitError


def test_formats_have_the_numbers_that_users_know() -> None:
    assert [item.name for item in sorted(FORMAT)] == [
        "BATCHED",
        "RAGGED",
        "PAGED",
        "PARAMETER",
        "SLOTTED",
    ]


def test_a_vtensor_has_shape_padding_and_counts() -> None:
    tensor = vTensor((2, 3, 128), "bfloat16", None, FORMAT.RAGGED, 7)
    assert tensor.dim() == tensor.ndim == 3
    assert tensor.numel() == 768
    assert tensor.size() == (2, 3, 128)
    assert tensor.size(1) == 3
    assert tensor.padded_shape == (2, 4, 128)
    assert tensor.needs_padding()
    assert not vTensor((0, 4, 64)).needs_padding()


@pytest.mark.parametrize(
    "arguments",
    [{"shape": (1, 2.0)}, {"_format": 1}, {"tensor_id": "1"}, {"padded_shape": (1.5,)}],
)
def test_wrong_types_are_type_errors(arguments: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        vTensor(**arguments)  # type: ignore[arg-type]


def test_a_vtensor_is_re_tagged_in_place() -> None:
    tensor = vTensor((0, 1, 2))
    assert as_vtensor(tensor, FORMAT.PAGED, 5) is tensor
    assert (tensor._format, tensor.tensor_id) == (FORMAT.PAGED, 5)


def test_a_real_tensor_is_described_and_keywords_do_too() -> None:
    described = as_vtensor(torch.zeros(2, 3, dtype=torch.float16))
    assert (described.shape, described.dtype) == ((2, 3), DType.FLOAT16)
    assert as_vtensor(shape=(1, 2, 3), dtype="float32").shape == (1, 2, 3)
    with pytest.raises(TypeError, match="needs a tensor or shape="):
        as_vtensor()


def test_a_parameter_without_layers_serves_all_of_them() -> None:
    parameter = Parameter([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(parameter.gather(17), [[1, 2], [3, 4]])
    assert parameter.shape == (0, 2, 2)


def test_a_parameter_has_a_table_for_each_layer() -> None:
    parameter = Parameter(torch.arange(12, dtype=torch.bfloat16).reshape(3, 2, 2))
    np.testing.assert_array_equal(parameter.gather(2), [[8, 9], [10, 11]])
    with pytest.raises(FlowInitError, match="found layer 3, expected one of 0 to 2"):
        parameter.gather(3)


def test_a_layer_lookup_is_followed_and_never_clamped() -> None:
    parameter = Parameter(np.arange(8.0).reshape(2, 2, 2), {5: 1, 9: 0})
    np.testing.assert_array_equal(parameter.gather(5), [[4, 5], [6, 7]])
    with pytest.raises(FlowInitError, match=r"found layer 1, expected one of \[5, 9\]"):
        parameter.gather(1)
    with pytest.raises(FlowInitError, match="found row 2 for layer 0"):
        Parameter(np.zeros((2, 2, 2)), {0: 2})


@pytest.mark.parametrize("value", [np.zeros(3), np.zeros((1, 2, 3, 4, 5)), "text"])
def test_what_is_no_table_is_refused(value: object) -> None:
    with pytest.raises(FlowInitError):
        Parameter(value)


def test_equal_values_have_equal_digests_and_others_do_not() -> None:
    one, same = Parameter(np.ones((2, 3))), Parameter(np.ones((2, 3)))
    other = Parameter(np.ones((3, 2)))
    digests = [item.for_graph("param.w").digest for item in (one, same, other)]
    assert digests[0] == digests[1] != digests[2]
