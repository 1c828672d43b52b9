"""Kernels of KernBench's dialect on queues of plain Python: no machine, no time, float64 values."""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from greenlet import greenlet

Array = np.ndarray[Any, Any]
Place = tuple[int, int, int]
"""SIP, cube, PE."""
Wiring = Mapping[Place, Mapping[str, Place]]

PAIRS = (("E", "W"), ("S", "N"), ("global_E", "global_W"), ("global_S", "global_N"))
OPPOSITES = dict(PAIRS) | {back: ahead for ahead, back in PAIRS}


class Block:
    """A tile's values, with the attributes that the algorithms read."""

    dtype = "f16"

    def __init__(self, values: Array) -> None:
        self.values = values
        self.shape = values.shape

    def __add__(self, other: "Block") -> "Block":
        return Block(self.values + other.values)


class MockWorld:
    """Programs that run in turn until each waits; messages by receiver and direction."""

    def __init__(self, wiring: Wiring, num_pes: int, num_cubes: int) -> None:
        self.wiring = wiring
        self.num_pes, self.num_cubes = num_pes, num_cubes
        self.tiles: dict[tuple[int, int], Array] = {}  # by SIP and byte address
        self.queues: dict[tuple[Place, str], deque[Array]] = defaultdict(deque)
        self.num_steps = 0  # sends and receives so far

    def run(self, program: Callable[["MockTl"], None], places: list[Place]) -> None:
        left = [greenlet(lambda place=place: program(MockTl(self, place))) for place in places]
        while left:
            before = self.num_steps, len(left)
            for each in left:
                each.switch()
            left = [each for each in left if not each.dead]
            assert (self.num_steps, len(left)) != before, "programs that wait for ever"
        assert not any(self.queues.values()), "messages that nobody has received"


class MockTl:
    """The ``tl`` of one program."""

    def __init__(self, world: MockWorld, place: Place) -> None:
        self.world, self.place = world, place

    def program_id(self, axis: int) -> int:
        return self.place[2 - axis]

    def num_programs(self, axis: int) -> int:
        return (self.world.num_pes, self.world.num_cubes)[axis]

    def load(self, address: int, shape: tuple[int, ...], dtype: str) -> Block:
        assert dtype == "f16"
        tile = self.world.tiles[self.place[0], address]
        assert tile.shape == shape
        return Block(tile.astype(np.float64))

    def store(self, address: int, block: Block) -> None:
        assert (self.place[0], address) in self.world.tiles
        self.world.tiles[self.place[0], address] = block.values

    def send(self, dir: str, src: Block) -> None:  # KernBench's name
        peer = self.world.wiring[self.place][dir]
        back = [name for name, to in self.world.wiring[peer].items() if to == self.place]
        name = OPPOSITES[dir] if OPPOSITES.get(dir) in back else back[0]
        self.world.queues[peer, name].append(src.values)
        self.world.num_steps += 1

    def recv(self, dir: str, shape: tuple[int, ...], dtype: str) -> Block:  # KernBench's name
        assert dir in self.world.wiring[self.place]
        assert dtype == "f16"
        queue = self.world.queues[self.place, dir]
        while not queue:
            parent = greenlet.getcurrent().parent
            assert parent is not None
            parent.switch()
        self.world.num_steps += 1
        values = queue.popleft()
        assert values.shape == shape
        return Block(values)
