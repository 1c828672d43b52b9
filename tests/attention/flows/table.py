"""Weights for learned flows, the same for the flow and for its rule on paper."""

from collections.abc import Mapping

import numpy as np

from tests.attention.flows.case import QUERY_HEADS, WIDTH
from tests.attention.oracle_flows.compressed import Compressor, NsaWeights
from tests.attention.oracle_flows.decode import Array

Sizes = dict[str, tuple[int, ...]]
HIDDEN = 6


def drawn(sizes: Sizes) -> dict[str, Array]:
    """Random tables, exact in float32, that keep the size of what they multiply.

    Larger ones would push softmax shares below the smallest float32, where pages tie.
    """
    generator = np.random.default_rng(20261116)
    tables = {}
    for name, shape in sizes.items():
        table = generator.normal(size=shape) / np.sqrt(shape[-1])
        tables[name] = table.astype(np.float32).astype(np.float64)
    return tables


def nsa_sizes(quarter: int) -> Sizes:
    sizes: Sizes = {"gates": (3, WIDTH)}
    for name in ("key", "value"):
        for part in ("head", "tail"):
            sizes[f"{name}_{part}"] = (HIDDEN, quarter * WIDTH)
        sizes[f"{name}_bias"] = (1, HIDDEN)
        sizes[f"{name}_out"] = (WIDTH, HIDDEN)
    return sizes


def nsa_weights(tables: Mapping[str, Array], *, quarter: int) -> NsaWeights:
    """The same tables as the rule on paper has them: one matrix for a whole window."""
    keys, values = (
        Compressor(
            first=np.concatenate([tables[f"{name}_head"], tables[f"{name}_tail"]], axis=1),
            bias=tables[f"{name}_bias"][0],
            second=tables[f"{name}_out"],
        )
        for name in ("key", "value")
    )
    return NsaWeights(keys, values, tables["gates"], width=2 * quarter, stride=quarter)


def dsa_sizes() -> Sizes:
    flat = QUERY_HEADS * WIDTH
    return {"query": (4 * 6, flat), "head": (4, flat), "key": (6, WIDTH)}


def seer_sizes() -> Sizes:
    return {"query": (6, QUERY_HEADS * WIDTH), "key": (6, 3 * WIDTH)}


def factorized_sizes(block_size: int) -> Sizes:
    return {
        "query": (1, QUERY_HEADS, WIDTH, 5),
        "key": (1, QUERY_HEADS, WIDTH, 5),
        "token": (1, QUERY_HEADS, block_size, 2),
    }
