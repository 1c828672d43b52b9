"""Heads of grouped-query attention: how many there are, and what attention over them costs."""

from dataclasses import dataclass
from typing import Annotated

from tilewright.errors import BenchError

QHeads = Annotated[int, "query heads"]
KvHeads = Annotated[int, "key-value heads, split over the PEs of a cube"]
HeadDim = Annotated[int, "channels of a head"]

F16_BYTES = 2


@dataclass(frozen=True, slots=True)
class Heads:
    """``group`` query heads share a KV head."""

    kv: int
    group: int
    dim: int

    @property
    def scale(self) -> float:
        """Of the scores."""
        return float(self.dim**-0.5)

    @property
    def token_bytes(self) -> int:
        """Of one token's key and value, over all KV heads, in f16."""
        return 2 * self.kv * self.dim * F16_BYTES

    @property
    def query_bytes(self) -> int:
        """Of one token's query, or of its output, over all heads, in f16."""
        return self.kv * self.group * self.dim * F16_BYTES

    def flop(self, num_pairs: int) -> int:
        """Of so many pairs of a query and a key: two products over the channels."""
        return 4 * num_pairs * self.kv * self.group * self.dim

    def elements(self, num_pairs: int) -> dict[str, int]:
        """Of a softmax over so many pairs."""
        size = num_pairs * self.kv * self.group
        return {"max": size, "sub": size, "exp2": size, "sum": size}


def heads_of(where: str, q_heads: int, kv_heads: int, head_dim: int) -> Heads:
    """Refuses heads that do not make groups."""
    if kv_heads < 1 or q_heads < 1 or q_heads % kv_heads or head_dim < 1:
        found = f"{q_heads} query heads for {kv_heads} KV heads of {head_dim} channels"
        fix = "take a multiple, as 32 for 8"
        raise BenchError(where, found, "groups of equal size, at least 1 of each", fix)
    return Heads(kv_heads, q_heads // kv_heads, head_dim)
