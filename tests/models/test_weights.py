from dataclasses import dataclass

import numpy as np
import torch

from tests.models.tiny import gqa_shape, peer_model, weights_of_peer
from tilewright.models.weights import Array, map_arrays


@dataclass(frozen=True)
class Leaf:
    array: Array
    missing: Array | None
    name: str


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...]
    size: int


def test_every_array_of_a_tree_is_mapped_and_nothing_else() -> None:
    tree = Tree((Leaf(np.ones(2), None, "a"), Leaf(np.zeros(3), np.ones(1), "b")), 7)
    found = map_arrays(tree, lambda array: array + 1)
    assert [leaf.array.tolist() for leaf in found.leaves] == [[2.0, 2.0], [1.0, 1.0, 1.0]]
    assert found.leaves[0].missing is None
    assert (found.leaves[1].name, found.size) == ("b", 7)
    assert tree.leaves[0].array.tolist() == [1.0, 1.0]


def test_a_model_moves_to_torch_as_a_whole() -> None:
    weights = weights_of_peer(gqa_shape(), peer_model(gqa_shape()))
    moved = map_arrays(weights, torch.tensor)
    assert moved.shape == weights.shape
    assert isinstance(moved.layers[1].ffn_norm, torch.Tensor)
    assert isinstance(moved.output, torch.Tensor)
