"""The reference core's queue of events against a plain sorted list."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tilewright.engine.reference.queue import BUCKET_SHIFT, Event, EventQueue

WIDTH = 1 << BUCKET_SHIFT
DELAYS = st.sampled_from([0, 1, 7, WIDTH - 1, WIDTH, 3 * WIDTH, 100 * WIDTH])
PHASES = st.integers(0, 3)


@dataclass
class Pair:
    """A queue, and the list that says what it must hold."""

    queue: EventQueue = field(default_factory=EventQueue)
    model: list[Event] = field(default_factory=list)
    now_ps: int = 0
    num_pushed: int = 0
    num_taken: int = 0

    def push(self, delay_ps: int, phase: int) -> Event:
        event = (self.now_ps + delay_ps, phase, -self.num_pushed, 0, object(), None, 0)
        self.num_pushed += 1
        self.queue.push(event)
        self.model.append(event)
        return event

    def take(self) -> None:
        """One event, as a run takes it that stops behind it."""
        assert self.queue.open() == bool(self.model)
        for event in self.queue.opened.left:
            assert event is min(self.model, key=lambda other: other[:4])
            self.model.remove(event)
            self.now_ps = event[0]
            self.num_taken += 1
            break
        if self.num_taken % 2:
            self.queue.forget_taken()


@given(st.lists(st.tuples(st.sampled_from(["push", "take", "discard"]), DELAYS, PHASES)))
def test_the_least_key_comes_next_whatever_is_pushed_in_between(
    steps: list[tuple[str, int, int]],
) -> None:
    pair = Pair()
    for step, delay_ps, phase in steps:
        match step:
            case "push":
                pair.push(delay_ps, phase)
            case "take":
                pair.take()
            case _:
                event = pair.push(delay_ps, phase)
                pair.queue.discard(event)
                pair.model.remove(event)
        assert bool(pair.queue) == bool(pair.model)
        assert pair.queue.num_taken == pair.num_taken
    while pair.model:
        pair.take()
    assert not pair.queue
    assert not pair.queue.open()


def test_an_event_of_a_lower_phase_runs_next_though_its_instant_has_begun() -> None:
    queue = EventQueue()
    queue.push((5, 1, 9, 0, "a completion", None, 0))
    queue.push((5, 2, 0, 0, "a grant", None, 0))
    seen = []
    while queue.open():
        for *_, what, _, _ in queue.opened.left:
            seen.append(what)
            if what == "a completion":
                queue.push((5, 0, 1, 0, "a start", None, 0))
                assert queue.has_before(5, 2)
    assert seen == ["a completion", "a start", "a grant"]


def test_an_event_pushed_after_the_queue_ran_dry_is_not_lost() -> None:
    queue = EventQueue()
    queue.push((5, 1, 0, 0, "first", None, 0))
    while queue.open():
        assert [what for *_, what, _, _ in queue.opened.left] == ["first"]
    queue.push((6, 1, 0, 0, "second", None, 0))
    assert queue.open()
    assert [what for *_, what, _, _ in queue.opened.left] == ["second"]


def test_an_event_that_has_run_cannot_be_discarded() -> None:
    queue = EventQueue()
    event = (5, 1, 0, 0, "it", None, 0)
    queue.push(event)
    assert queue.open()
    assert next(queue.opened.left) == event
    queue.push((5, 2, 0, 0, "the next", None, 0))
    queue.discard(event)
    assert queue.num_taken == 1
    assert [what for *_, what, _, _ in queue.opened.left] == ["the next"]
