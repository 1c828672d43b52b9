"""What an issuer remembers of a value, and of a composite that is open."""

UNTOUCHED = -1
MANY_USES = 4096


class IssuedValue:
    """Where a value lies, when it is there, and who uses it."""

    __slots__ = ("far_bytes", "near_bytes", "num_bytes", "task", "uses", "uses_before")

    def __init__(self, num_bytes: int, near_bytes: int, far_bytes: int, task: int) -> None:
        self.num_bytes = num_bytes
        self.near_bytes = near_bytes
        self.far_bytes = far_bytes
        self.task = task
        self.uses = [task]  # one for each command: of the last ones some may be under way
        self.uses_before = UNTOUCHED  # the composite that is open; then come those of its parts

    def note_use(self, task: int) -> None:
        """By a command whose part in the value ends with this task."""
        if self.uses[-1] != task:
            self.uses.append(task)

    def forget_uses(self, window: int) -> None:
        """Forget all but the last ``window`` of many uses, which have ended."""
        if len(self.uses) >= MANY_USES + window:
            del self.uses[:-window]


class OpenComposite:
    """A command that is told in parts: the issue of all, the ends of each, the values they use."""

    __slots__ = ("ends", "issue", "touched")

    def __init__(self, issue: int) -> None:
        self.issue = issue
        self.ends: list[int] = []
        self.touched: list[IssuedValue] = []
