"""NumPy references, in float64, of the programs in ``validation/kernbench/programs``.

A form gets the program's ``RESULTS``, takes its inputs from there, and returns the expected value
of each result by name. A result by rank is a dictionary there, and an axis of ranks here.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

RANKS = 2  # of the programs with a worker for each SIP

Doubles = npt.NDArray[np.float64]
Results = Mapping[str, Any]
Form = Callable[[Results], Mapping[str, Any]]


def _wide(array: Any) -> Doubles:
    return np.asarray(array, np.float64)


def product(results: Results) -> Mapping[str, Any]:
    """Return x w."""
    return {"out": _wide(results["x"]) @ _wide(results["w"])}


def moved_bytes(results: Results) -> Mapping[str, Any]:
    """Return what each PE has fetched from the shards of others, by rows and by columns."""
    x, y, pes = results["x"], results["y"], results["pes"]
    following, farthest = np.roll(x, -1, axis=0), np.roll(x, -(len(x) // 2), axis=0)
    rows = np.concatenate(
        [following[:, :4], farthest[:, -4:], x[:, 4:8] + farthest[:, -4:]], axis=1
    )
    shards = np.split(y, pes, axis=1)
    moved = []
    for pe in range(pes):
        taken = np.zeros_like(shards[pe])
        taken[:-1] = shards[(pe - 1) % pes][1:]
        moved.append(taken)
    return {"out": rows, "moved": np.concatenate(moved, axis=1)}


def epilogues(results: Results) -> Mapping[str, Any]:
    """Return 2 relu(scale x w + bias), for the scale of each launch."""
    plain = _wide(results["x"]) @ _wide(results["w"])
    return {
        name: 2.0 * np.maximum(scale * plain + _wide(results["bias"]), 0.0)
        for name, scale in {"out": 0.25, "fused": 0.5}.items()
    }


def _softmax(scores: Doubles) -> Doubles:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    normalized: Doubles = weights / weights.sum(axis=-1, keepdims=True)
    return normalized


def attention(results: Results) -> Mapping[str, Any]:
    """Return softmax(q k^T / sqrt(d)) v."""
    q, k, v = (_wide(results[name]) for name in "qkv")
    return {"out": _softmax(q @ k.T / np.sqrt(q.shape[1])) @ v}


def decoded_pages(results: Results) -> Mapping[str, Any]:
    """Return the attention of each request over the tokens of its pages; page -1 is absent."""
    q, k, v = (_wide(results[name]) for name in "qkv")
    requests, most = results["table"].shape
    page = len(k) // (requests * most)
    rows = []
    for request, length in enumerate(results["lengths"]):
        tokens = [
            number * page + token
            for index, number in enumerate(results["table"][request])
            for token in range(min(page, length - index * page))
            if number >= 0
        ]
        weights = _softmax(q[request] @ k[tokens].T / np.sqrt(q.shape[1]))
        rows.append(weights @ v[tokens])
    return {"out": np.stack(rows)}


def reduced_tiles(results: Results) -> Mapping[str, Any]:
    """Return the sum of all tiles in the place of each; the group is of KernBench's backend."""
    tiles = _wide(results["tiles"])
    total = np.broadcast_to(tiles.sum(axis=0), tiles.shape)
    return {"out": total, "world": len(tiles), "backend": "ahbm"}


def shifted(results: Results) -> Mapping[str, Any]:
    """Return the rows of the western neighbours, and the sums of both neighbours' rows."""
    x = _wide(results["x"])
    west, east = np.roll(x, 1, axis=0), np.roll(x, -1, axis=0)
    return {"shifted": west, "both": west + east}


def reduced_ranks(results: Results) -> Mapping[str, Any]:
    """Return the sum over ranks, as often as it was summed, and what each worker saw."""
    local = _wide([results["local"][rank] for rank in sorted(results["local"])])
    total = local.sum(axis=0) * RANKS ** (results.get("steps", 1) - 1)
    seen = [(rank, RANKS, rank) for rank in range(RANKS)]
    return {"out": np.broadcast_to(total, (RANKS, *total.shape)), "seen": seen, "before": None}


def tensor_parallel(results: Results) -> Mapping[str, Any]:
    """Return x first second on every rank, and the part of the first weight that each rank has."""
    x, first, second = (_wide(results[name]) for name in ("x", "first", "second"))
    whole = x @ first @ second
    rows, columns = first.shape
    seen = [(rank, RANKS, (rows, columns // RANKS)) for rank in range(RANKS)]
    return {"out": np.broadcast_to(whole, (RANKS, *whole.shape)), "seen": seen}


def summed(results: Results) -> Mapping[str, Any]:
    """Return x + y, and what the context said of its launch."""
    facts = {"ok": True, "is_all": True, "done": True, "cubes": 2}
    return {"out": _wide(results["x"]) + _wide(results["y"]), **facts}


def submitted(results: Results) -> Mapping[str, Any]:
    """Return what three messages leave: the first half cleared, then all of it incremented."""
    x = _wide(results["x"])
    x[: len(x) // 2] = 0.0
    facts = {"ok": [True, True], "before": False, "after": True, "same": True}
    return {"out": x + 1.0, **facts}


def scaled(results: Results) -> Mapping[str, Any]:
    """Return 2.5 x."""
    return {"out": 2.5 * _wide(results["x"])}


def negated(results: Results) -> Mapping[str, Any]:
    """Return -x, for each of three launches."""
    return dict.fromkeys(("local", "named", "whole"), -_wide(results["x"]))


def squared(results: Results) -> Mapping[str, Any]:
    """Return the squares of x, for both policies."""
    return dict.fromkeys(("older", "newer"), _wide(results["x"]) ** 2)


def two_products(results: Results) -> Mapping[str, Any]:
    """Return the activations relu(x first), and these times second."""
    x, first, second = (_wide(results[name]) for name in ("x", "first", "second"))
    hidden = np.maximum(x @ first, 0.0)
    return {"hidden": hidden, "out": hidden @ second}
