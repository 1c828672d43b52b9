"""Messages to and from neighbours."""

from typing import Any

from tilewright.language import message
from tilewright.language.block_type import block_type
from tilewright.language.current import current_program
from tilewright.language.message import PendingMessage

__all__ = ("recv", "recv_async", "send")


def send(dir: str, src: Any) -> None:
    """Send a block to the neighbour in a direction; goes on at once unless the ring there is full.

    A block that is larger than a slot goes in fragments.
    """
    program = current_program()
    message.send(program, dir, program.block(src))


def recv(dir: str | None, shape: Any, dtype: Any) -> Any:
    """The next message from a direction, as it was when it was sent; waits for it.

    None takes the directions in turn, in the order in which the launch names them.
    """
    return recv_async(dir, shape, dtype).wait()


def recv_async(dir: str | None, shape: Any, dtype: Any) -> PendingMessage:
    """The same, without waiting: ``tl.wait`` gives the block."""
    program = current_program()
    kind = block_type(program.dtype(dtype), program.extents(shape))
    return message.receive(program, dir, kind)
