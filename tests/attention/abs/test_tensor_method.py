"""Methods under torch's names: shapes are torch's, and what has no meaning is refused by name."""

from typing import Any

import pytest
import torch

from tests.attention.flow.making import examine, score
from tilewright.errors import FlowError

PAGES = 5
METHODS: dict[str, Any] = {
    "mean rows": lambda x: x.mean(dim=1, keepdim=True),
    "mean columns": lambda x: x.mean(-1, True),
    "sum both": lambda x: x.sum(dim=(1, 2), keepdim=True),
    "amax": lambda x: x.amax(dim=-1, keepdim=True),
    "amin": lambda x: x.amin(dim=1, keepdim=True),
    "norm": lambda x: x.norm(dim=2, keepdim=True),
    "softmax": lambda x: x.softmax(dim=-1),
    "transpose": lambda x: x.transpose(1, 2),
    "transpose from the end": lambda x: x.transpose(-1, -2),
    "transpose nothing": lambda x: x.transpose(1, 1),
    "permute": lambda x: x.permute(0, 2, 1),
    "swapaxes": lambda x: x.swapaxes(1, 2),
    "mT": lambda x: x.mT,
    "reshape": lambda x: x.reshape(-1, 2, 32),
    "view as a tuple": lambda x: x.view((x.shape[0], 8, 8)),
    "reshape with an open size": lambda x: x.reshape(x.shape[0], -1, 4),
    "clamp": lambda x: x.clamp(min=0.0),
    "clamp both": lambda x: x.clamp(0.0, 1.0),
    "masked_fill": lambda x: x.masked_fill(x > 0, 1.0),
    "where": lambda x: x.where(x > 0, x * 2.0),
    "max of two": lambda x: x.max(x * 0.5),
    "matmul": lambda x: x.matmul(x.transpose(1, 2)),
    "arithmetic": lambda x: x.add(x, alpha=2).sub(x).mul(2.0).div(3.0).pow(2.0).neg().abs(),
    "conversions": lambda x: x.float().to(torch.float32).contiguous().clone(),
    "functions": lambda x: x.square().sqrt().exp().log().relu().sigmoid(),
}


def shape_of(method: Any) -> tuple[int, ...]:
    """Inner shape of a method's result, of a value [S, 4, 16]."""
    found: list[tuple[int, ...]] = []

    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        found.append(method(cache["centroids"] * q).shape[1:])
        o.select(score(q, cache).topk())

    examine(forward)
    return found[0]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_gives_the_shape_that_torch_gives(name: str) -> None:
    assert shape_of(METHODS[name]) == tuple(METHODS[name](torch.ones(PAGES, 4, 16)).shape[1:])


@pytest.mark.parametrize(
    ("method", "found"),
    [
        (lambda x: x.mean(), "Mean without an axis, expected dim=0"),
        (lambda x: x.mean(dim=1, keepdim=False), "keepdim=False, expected keepdim=True"),
        (lambda x: x.sum(dim=(0, 1)), r"Sum over dim \(0, 1\)"),
        (lambda x: x.softmax(dim=2, dtype=torch.float16), "dtype=torch.float16, expected float32"),
        (lambda x: x.unsqueeze(1), "'unsqueeze', expected no unsqueeze, but rank 3"),
        (lambda x: x.squeeze(1), "'squeeze'"),
        (lambda x: x.flatten(1), r"'flatten', expected reshape\(-1, 1, rows \* columns\)"),
        (lambda x: x.expand(2, 4, 16), "'expand', expected broadcasting"),
        (lambda x: x.max(dim=1).values, r"'values', expected amax\(dim\)"),
        (lambda x: x.add_(1.0), "'add_', expected a new value: add without the underscore"),
        (lambda x: x.transpose(0, 1), r"transpose\(0, 1\), expected rows and columns"),
        (lambda x: x.permute(1, 0, 2), r"permute\(1, 0, 2\), expected the page axis first"),
        (lambda x: x.reshape(64), r"the shape \(64,\), expected \(rows, columns\)"),
        (lambda x: x.reshape(7, 4, 16), "7 as the leading size"),
        (lambda x: x.reshape(-1, -1, 16), "at most one size of -1"),
        (lambda x: x.reshape(-1, 3, 16), "expected 3 x 16 = 48 elements"),
        (lambda x: x.norm(p=1, dim=1), "norm with p=1, expected p=2"),
        (lambda x: x.to("cuda:0"), "expected an element type: a flow has no devices"),
        (lambda x: x.item(), "'item', expected ops"),
        (lambda x: x.mean(dim=5), "dim=5, expected dim 0 or 1 or 2"),
        (lambda x: x.clamp(min=1.0, low=1.0), "two limits of one side"),
    ],
)
def test_a_method_without_meaning_is_refused_by_name(method: Any, found: str) -> None:
    with pytest.raises(FlowError, match=found) as caught:
        shape_of(method)
    assert caught.value.source.startswith("test_tensor_method.py:")
