"""State across decode steps: a load sees what the last step left, a save shows in the next."""

from collections.abc import Callable, Sequence

import numpy as np

from tests.attention.oracle_ops.row import Array

Update = Callable[[int, Array], Array]


def run_state(
    num_pages_at_step: Sequence[int], initial: Array, update: Update
) -> list[tuple[Array, Array]]:
    """(before, after) of every step.

    ``num_pages_at_step`` counts the finished pages; ``update(step, before)`` is what the flow
    saves. A page that finishes between two steps enters with ``initial`` [r, c].
    """
    history: list[tuple[Array, Array]] = []
    after = np.empty((0, *initial.shape))
    for step, num_pages in enumerate(num_pages_at_step):
        fresh = np.repeat(initial[None], num_pages - after.shape[0], axis=0)
        before = np.concatenate([after, fresh])
        after = update(step, before.copy())
        history.append((before, after))
    return history
