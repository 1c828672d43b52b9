"""The turn rule of a ring: the shorter way round, and a dateline between the last and the first.

A packet that passes from the last router to the first, or back, uses sublevel 1 on that wire and
behind it. No packet passes the dateline twice, so neither sublevel closes a circle.
"""

from tilewright.machine.layout import Step


def ring_path(num_routers: int, one: int, other: int) -> tuple[Step, ...]:
    """Routers from ``one`` (left out) to ``other``; of two equal ways the one that counts up.

    >>> ring_path(8, 6, 1)
    ((7, 0), (0, 1), (1, 1))
    """
    ahead = (other - one) % num_routers
    forward = 2 * ahead <= num_routers
    num_steps, step = (ahead, 1) if forward else (num_routers - ahead, -1)
    steps = []
    sublevel = 0
    at = one
    for _ in range(num_steps):
        following = (at + step) % num_routers
        if abs(following - at) != 1:
            sublevel = 1
        steps.append((following, sublevel))
        at = following
    return tuple(steps)
