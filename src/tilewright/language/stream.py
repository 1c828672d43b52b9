"""The commands of one PE: what its programs issue, handed to the engine in pieces."""

from tilewright.device.pe import Pe
from tilewright.engine import Engine
from tilewright.engine.hub import Hub

__all__ = ("Stream",)

PIECE_TASKS = 2**18


class Stream:
    """Nothing that is issued happens before some program waits, or all have ended."""

    __slots__ = ("_hub", "issuer", "pe")

    def __init__(self, hub: Hub, engine: Engine, pe: Pe) -> None:
        self.pe = pe
        self.issuer = engine.add_issuer(pe.issuer)
        self._hub = hub

    def hand_over_if_long(self) -> None:
        """Keeps the memory of a program that never waits within bounds."""
        if self.issuer.num_waiting >= PIECE_TASKS:
            self.hand_over()

    def hand_over(self) -> None:
        self._hub.submit_piece(self.issuer)

    def wait(self, task: int, what: str) -> None:
        """Suspend the running program until a task has ended; effects are applied by then."""
        self.hand_over()
        self._hub.wait(self.issuer.task_id(task), what)
