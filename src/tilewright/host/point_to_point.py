"""``torch.distributed``: messages from one rank to another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from tilewright.collectives.buffers import Buffers, Piece
from tilewright.collectives.group import Group
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.tuning import CallOptions, RingKeys, parse_ring
from tilewright.collectives.work import Work
from tilewright.errors import CollectiveError
from tilewright.host.process_group import ProcessGroups
from tilewright.runtime.tensor.tensor import Tensor


@dataclass(eq=False, repr=False)
class PairMessage:
    """``P2POp``, a message of `batch_isend_irecv`: ``op`` is ``isend`` or ``irecv``."""

    op: Callable[..., Any]
    tensor: Tensor
    peer: int | None = None
    group: Group | None = None
    tag: int = 0
    group_peer: int | None = None


class PointToPoint(ProcessGroups):
    """Messages of a pair of ranks with one tag arrive in the order in which they are sent.

    Both sides may say on which rings, by the keys of ``ccl.yaml``, and must say the same.
    """

    P2POp = PairMessage

    def send(
        self,
        tensor: Tensor,
        dst: int | None = None,
        group: Group | None = None,
        tag: int = 0,
        group_dst: int | None = None,
        **ring: Unpack[RingKeys],
    ) -> None:
        """Until all of it is in the receiver's ring: a long message waits for its receiver."""
        self.isend(tensor, dst, group, tag, group_dst, **ring).wait()

    def recv(
        self,
        tensor: Tensor,
        src: int | None = None,
        group: Group | None = None,
        tag: int = 0,
        group_src: int | None = None,
        **ring: Unpack[RingKeys],
    ) -> int:
        """Into the tensor; returns the rank of the world that has sent it."""
        chosen = self._group("recv", group)
        sender = self._root("recv", chosen, src, group_src)
        self.irecv(tensor, src, group, tag, group_src, **ring).wait()
        return chosen.world_ranks[sender]

    def isend(
        self,
        tensor: Tensor,
        dst: int | None = None,
        group: Group | None = None,
        tag: int = 0,
        group_dst: int | None = None,
        **ring: Unpack[RingKeys],
    ) -> Work:
        """As `send`, and do not wait."""
        chosen, mine, peer = self._pair("isend", dst, group, group_dst)
        return self._message(chosen, (mine, peer), tag, tensor, ring, sends=True)

    def irecv(
        self,
        tensor: Tensor,
        src: int | None = None,
        group: Group | None = None,
        tag: int = 0,
        group_src: int | None = None,
        **ring: Unpack[RingKeys],
    ) -> Work:
        """As `recv`, and do not wait."""
        chosen, mine, peer = self._pair("irecv", src, group, group_src)
        return self._message(chosen, (peer, mine), tag, tensor, ring, sends=False)

    def batch_isend_irecv(self, p2p_op_list: Sequence[PairMessage]) -> list[Work]:
        """All of them under way at once; a handle for each."""
        for each in p2p_op_list:
            if each.op not in (self.isend, self.irecv):
                found, fix = f"the op {each.op!r}", "pass dist.isend or dist.irecv"
                raise CollectiveError("batch_isend_irecv", found, "isend or irecv", fix)
        return [
            each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer)
            for each in p2p_op_list
        ]

    def _pair(
        self, where: str, peer: int | None, group: Group | None, group_peer: int | None
    ) -> tuple[Group, int, int]:
        """The group, and of it the caller and its peer."""
        chosen = self._group(where, group)
        if self._workers.rank is None:
            found, fix = "a call outside of workers", "call it in a function that spawn starts"
            raise CollectiveError(where, found, "a rank that sends or receives", fix)
        mine = chosen.rank_of(self._workers.rank)
        other = self._root(where, chosen, peer, group_peer)
        if other == mine:
            found = f"rank {self._workers.rank} itself as its peer"
            raise CollectiveError(where, found, "another rank", "copy the tensor instead")
        return chosen, mine, other

    def _message(
        self,
        group: Group,
        pair: tuple[int, int],
        tag: int,
        tensor: Tensor,
        ring: RingKeys,
        *,
        sends: bool,
    ) -> Work:
        """A broadcast in a group of the two."""
        where = "isend" if sends else "irecv"
        world = self._checked_world(where)
        options = CallOptions(ring=parse_ring(where, ring))
        channel = world.channel(group, *pair, tag)
        piece = (Piece(tensor),)
        buffers = Buffers(piece, (None,)) if sends else Buffers((None,), piece)
        call = Call(Operation.BROADCAST, num_ranks=2, word="message")
        return world.start(
            channel, 0 if sends else 1, call, buffers, options=options, algorithm="direct"
        )
