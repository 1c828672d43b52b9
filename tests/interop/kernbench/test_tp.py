"""Tensor-parallel layers and regions of KernBench programs beside NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.interop.kernbench.contexts import context, two_sips
from tests.interop.kernbench.worlds import ONE, filled, run_ranks
from tilewright.errors import TilewrightError
from tilewright.interop.kernbench.context import RuntimeContext
from tilewright.interop.kernbench.tp import (
    ColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
    copy_to_tensor_model_parallel_region,
    destroy_model_parallel,
    gather_from_tensor_model_parallel_region,
    get_tensor_model_parallel_rank,
    get_tensor_model_parallel_world_size,
    initialize_model_parallel,
    model_parallel_is_initialized,
    scatter_to_tensor_model_parallel_region,
)

ROWS, WIDTH, INNER = 4, 32, 64


def drawn(seed: int, *shape: int, dtype: Any = np.float16) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) / 8).astype(dtype)


def columns(array: Any, rank: int) -> Any:
    return np.ascontiguousarray(np.split(array, 2, axis=1)[rank])


@pytest.mark.parametrize(("dtype", "text", "tolerance"), [
    (np.float16, "f16", 2e-3), (np.float32, "f32", 1e-5),
])  # fmt: skip
def test_a_pair_of_layers_is_the_product_of_the_whole_weights(
    dtype: Any, text: str, tolerance: float
) -> None:
    x, first, second = (drawn(at, *shape, dtype=dtype) for at, shape in
                        enumerate(((ROWS, WIDTH), (WIDTH, INNER), (INNER, WIDTH))))  # fmt: skip

    def work(rank: int, torch: RuntimeContext) -> Any:
        initialize_model_parallel(2, torch=torch)
        assert (get_tensor_model_parallel_rank(), get_tensor_model_parallel_world_size()) == (
            rank,
            2,
        )
        up = ColumnParallelLinear(WIDTH, INNER, bias=False, dtype=text, torch=torch)
        down = RowParallelLinear(INNER, WIDTH, dtype=text, torch=torch)
        assert (up.weight.shape, down.weight.shape) == ((WIDTH, INNER // 2), (INNER // 2, WIDTH))
        assert [(s.cube, s.pe) for s in up.weight.shards] == [(0, 0)]
        up.weight.copy_(torch.from_numpy(columns(first, rank)))
        down.weight.copy_(torch.from_numpy(np.split(second, 2)[rank]))
        return down(up(filled(torch, x))).numpy()

    wanted = x.astype(np.float64) @ first.astype(np.float64) @ second.astype(np.float64)
    for found in run_ranks(work).values():
        assert np.linalg.norm(found - wanted) <= tolerance * np.linalg.norm(wanted)


def test_regions_copy_scatter_and_gather_columns() -> None:
    matrix = drawn(7, ROWS, WIDTH)

    def work(rank: int, torch: RuntimeContext) -> Any:
        initialize_model_parallel(torch=torch)
        whole = copy_to_tensor_model_parallel_region(filled(torch, matrix))
        part = scatter_to_tensor_model_parallel_region(whole)
        np.testing.assert_array_equal(part.numpy(), columns(matrix, rank))
        return gather_from_tensor_model_parallel_region(part, torch=torch).numpy()

    for found in run_ranks(work).values():
        np.testing.assert_array_equal(found, matrix)


def _linear(torch: RuntimeContext, outputs: int = 4, **options: Any) -> ColumnParallelLinear:
    torch.distributed.init_process_group()
    initialize_model_parallel(torch=torch)
    torch.ahbm.set_device(0)
    return ColumnParallelLinear(4, outputs, torch=torch, **options)


def _without_device(torch: RuntimeContext) -> None:
    torch.distributed.init_process_group()
    initialize_model_parallel()
    RowParallelLinear(4, 4, torch=torch)


def _other_size(torch: RuntimeContext) -> None:
    torch.distributed.init_process_group()
    initialize_model_parallel(4, torch=torch)


def _a_line(torch: RuntimeContext) -> None:
    torch.distributed.init_process_group()
    initialize_model_parallel(torch=torch)
    scatter_to_tensor_model_parallel_region(torch.zeros((8,), dp=ONE))


MISTAKES: dict[str, tuple[Callable[[RuntimeContext], object], str]] = {
    "no torch": (lambda _: ColumnParallelLinear(4, 4), "torch=None, expected a runtime context"),
    "a bias": (lambda torch: _linear(torch, bias=True), "bias=True, expected bias=False"),
    "an odd size": (lambda torch: _linear(torch, 5), "out_features=5, expected a multiple of 2"),
    "an input": (
        lambda torch: _linear(torch)(torch.zeros((2, 8), dp=ONE)),
        r"an input of shape \(2, 8\) and dtype f16, expected \(rows, 4\) of f16",
    ),
    "no device": (_without_device, r"a worker without a device, expected the rank's SIP"),
    "a size": (_other_size, r"tensor_model_parallel_size=4, expected 2, all ranks"),
    "a line": (_a_line, r"a tensor of shape \(8,\), expected a matrix"),
    "an embedding": (lambda _: VocabParallelEmbedding(8, 4), r"a layer that KernBench has"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(mistake: str) -> None:
    make, message = MISTAKES[mistake]
    with pytest.raises(TilewrightError, match=message):
        make(context(two_sips()))


def test_a_layer_without_a_group_is_refused() -> None:
    torch = context(two_sips())
    torch.distributed.init_process_group()
    initialize_model_parallel()
    assert model_parallel_is_initialized()
    destroy_model_parallel()
    assert not model_parallel_is_initialized()
    with pytest.raises(RuntimeError, match="no tensor-parallel group, expected one"):
        ColumnParallelLinear(4, 4, torch=torch)
