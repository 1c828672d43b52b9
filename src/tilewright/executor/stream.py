"""The commands of one PE: what its programs issue, handed to the engine in pieces."""

from tilewright.device.pe import Pe
from tilewright.engine import Engine
from tilewright.engine.core import NO_TASK
from tilewright.engine.deadlock import What
from tilewright.engine.hub import Hub
from tilewright.language.source import SourceLine, line_text

PIECE_COMMANDS = 1024


class StreamWalker:
    """A stream as the MMU knows it; it outlives the stream and its tasks."""

    __slots__ = ("_stream",)

    def __init__(self, stream: "Stream") -> None:
        self._stream: Stream | None = stream

    def has_walked(self, command: int) -> bool:
        return self._stream is None or self._stream.has_walked(command)

    def end(self) -> None:
        """All walks have ended."""
        self._stream = None


class Stream:
    """The commands that programs of one PE have issued, until the engine has them.

    They are handed over when some program waits, or all have ended.

    A program runs ahead of its commands, but not without bound: when a piece is long enough it is
    handed over, and the program waits until the piece before it has run. A piece has more commands
    than may be under way, so none is issued later for that.
    """

    __slots__ = ("_hub", "_num_handed", "_piece_commands", "issuer", "pe", "piece_end", "walker")

    def __init__(self, hub: Hub, engine: Engine, pe: Pe) -> None:
        self.pe = pe
        self.issuer = engine.add_issuer(pe.issuer)
        self.walker = StreamWalker(self)
        self._hub = hub
        self._num_handed = 0  # tasks
        self._piece_commands = max(PIECE_COMMANDS, 2 * pe.issuer.window)
        self.piece_end = self._piece_commands  # commands at which it is handed over

    def hand_over_long(self, program: str, line: SourceLine) -> None:
        """Keep what a program that never waits has under way within bounds.

        Suspends the running program, which is at ``line``, until the piece before this one has run.
        """
        self.piece_end = self.issuer.num_commands + self._piece_commands
        before = self._num_handed
        self.hand_over()
        if before:
            what = lambda: f"{program} waits for room for more commands at {line_text(line)}"  # noqa: E731
            self._hub.wait(self.issuer.task_id(before - 1), what)

    def hand_over(self) -> None:
        """Submit what has been issued."""
        self._num_handed += self.issuer.num_waiting
        self._hub.submit_piece(self.issuer)

    def wait_for_all(self) -> None:
        """Suspend the running program, which has ended its work, until all of it is complete."""
        last = self.issuer.last_issue
        if last != NO_TASK:
            self.wait(last, "its last command")
        self.walker.end()

    def catch_up(self, what: What) -> None:
        """Suspend the running program until it would be where it is, had it not run ahead: all its
        commands are issued, and the values that it went on with are there.
        """
        for task in (self.issuer.last_issue, *self.issuer.stalls):
            if task != NO_TASK:
                self.wait(task, what)

    def has_walked(self, command: int) -> bool:
        """Whether the walk of a command has ended by now."""
        task = self.issuer.walk_of(command)
        return task < self._num_handed and self._hub.is_complete(self.issuer.task_id(task))

    def wait(self, task: int, what: What) -> None:
        """Suspend the running program until a task has ended; effects are applied by then."""
        self.hand_over()
        self._hub.wait(self.issuer.task_id(task), what)
