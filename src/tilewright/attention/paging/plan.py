"""What the pager decided and storage must carry out."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Admission:
    """A request has a table. Its first ``hit_tokens`` are in shared pages and need no prefill."""

    request: str
    hit_tokens: int
    hit_pages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PageCopy:
    """Copy-on-write: the first tokens of a shared page move to a page of the request's own."""

    source: int
    target: int
    num_tokens: int


@dataclass(frozen=True, slots=True)
class ExtendPlan:
    """An append, in the order that storage must keep: clear fresh pages, copy, then write.

    ``blocks`` and ``offsets`` place each new token: physical block, position in the block.
    Blocks ``first_full .. stop_full`` (logical) are complete with this append and were not before.
    """

    request: str
    first_token: int
    fresh_pages: tuple[int, ...]
    copies: tuple[PageCopy, ...]
    blocks: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    first_full: int
    stop_full: int

    @property
    def num_tokens(self) -> int:
        return len(self.blocks)
