import numpy as np
import pytest

from tilewright.bench.language.kernels import decode_kernel, step_kernel
from tilewright.bench.language.speed import measure_gemm
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.runtime.workspace import Workspace


@pytest.fixture(scope="module")
def machine() -> Machine:
    return build_machine(parse_machine("ahbm-small"))


def test_decode_attention_is_that_of_numpy(machine: Machine) -> None:
    rows, tokens, group, dim = 2, 128, 4, 64
    rng = np.random.default_rng(1)
    q = rng.standard_normal((rows, group, dim)).astype(np.float16)
    k, v = (rng.standard_normal((rows, tokens, dim)).astype(np.float16) for _ in range(2))
    workspace = Workspace(machine)
    pes = list(machine.grid.pes())[:rows]
    placed = [workspace.place(array, pes) for array in (q, k, v, np.zeros_like(q))]
    scale = dim**-0.5
    sizes = (tokens, scale, group, dim, 32)
    workspace.launch(decode_kernel, *placed, *sizes, grid=(rows,), pes=pes)
    wide_q, wide_k, wide_v = (array.astype(np.float64) for array in (q, k, v))
    scores = np.einsum("rgd,rtd->rgt", wide_q, wide_k) * scale
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("rgt,rtd->rgd", weights / weights.sum(-1, keepdims=True), wide_v)
    error = np.abs(workspace.read(placed[3]) - expected)
    assert np.max(error / np.linalg.norm(expected, axis=-1, keepdims=True)) < 2e-3


def test_steps_follow_each_other_in_memory(machine: Machine) -> None:
    workspace = Workspace(machine)
    pes = list(machine.grid.pes())[:2]
    stride = machine.spec.pe.mmu.page_bytes // 4
    x = workspace.place(np.zeros((2, stride), np.float32), pes)
    workspace.launch(step_kernel, x, 3, stride, 16, 16, grid=(2,), pes=pes)
    found = workspace.read(x)
    np.testing.assert_array_equal(found[:, :256], np.full((2, 256), 1.75, np.float32))
    assert not found[:, 256:].any()


def test_the_figures_of_a_product_add_up(machine: Machine) -> None:
    figures = measure_gemm(machine, size=512, tile=(64, 64, 128))
    assert 0 < figures.peak_fraction <= 1
    assert 0.7 < figures.event_growth < 1.05  # twice the rows, and what all rows share once
