"""Small flows for tests."""

from collections.abc import Callable
from typing import Any

from tilewright.attention.flow import TracedFlow, examine_flow, vFlow
from tilewright.attention.graph import Geometry

GEOMETRY = Geometry.gqa(page_size=8, head_dim=16, query_heads=4)

Indexer = Callable[[Any, Any, Any, Any], None]
CacheSide = Callable[[Any, Any, Any], None]


def centroid(cache: Any, _loc: Any, _ctx: Any) -> None:
    cache["centroids"] = cache["k"].mean(1)


def flow_of(
    indexer: Indexer,
    cache: CacheSide = centroid,
    fields: dict[str, Any] | None = None,
    **members: Any,
) -> vFlow:
    """A flow from functions; ``centroids`` is declared unless other fields are."""
    declared = {"centroids": (1, 16)} if fields is None else fields
    body = {
        "create_cache": lambda _self, _block_size, _head_dim: declared,
        "forward_cache": lambda _self, cache_, loc, ctx: cache(cache_, loc, ctx),
        "forward_indexer": lambda _self, q, o, cache_, ctx: indexer(q, o, cache_, ctx),
        **members,
    }
    made = type("Made", (vFlow,), body)()
    assert isinstance(made, vFlow)
    return made


def examine(indexer: Indexer, cache: CacheSide = centroid, **more: Any) -> TracedFlow:
    return examine_flow(flow_of(indexer, cache, **more), GEOMETRY, name="made")


def score(q: Any, cache: Any) -> Any:
    """A score [S, 1, 1]."""
    return (q.mean(1) @ cache["centroids"].T).max(2)
