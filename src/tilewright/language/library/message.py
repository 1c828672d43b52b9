"""Messages to and from neighbours."""

from typing import Any

from tilewright.language.block_type import block_type
from tilewright.language.current import current_program
from tilewright.language.executor import Handle
from tilewright.language.library.memory import store


def send(dir: str, src: Any) -> None:
    """Send a block to the neighbour in a direction; goes on at once unless the ring there is full.

    A block that is larger than a slot goes in fragments.
    """
    program = current_program()
    program.send(dir, program.block(src))


def recv(dir: str | None, shape: Any, dtype: Any, dst: Any = None) -> Any:
    """Wait for the next message from a direction and return it, as it was when it was sent.

    None takes the directions in turn, in the order in which the launch names them. With ``dst``, an
    address or a ref, the message is also stored there: a slot read and a store.
    """
    block = recv_async(dir, shape, dtype).wait()
    if dst is not None:
        store(dst, block)
    return block


def recv_async(dir: str | None, shape: Any, dtype: Any) -> Handle:
    """Begin to receive the next message from a direction; ``tl.wait`` gives the block."""
    program = current_program()
    kind = block_type(program.dtype(dtype), program.extents(shape))
    return program.receive(dir, kind)


def recv_no_consume(dir: str, shape: Any, dtype: Any) -> Any:
    """Wait for the next message from a direction and return its block; the message stays there.

    The slot is neither read nor given back: it takes no time but that of the arrival, the sender
    gets no credit, and the next ``recv`` gets the same message.
    """
    program = current_program()
    kind = block_type(program.dtype(dtype), program.extents(shape))
    return program.peek(dir, kind)
