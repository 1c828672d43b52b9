"""Kernels on DMAs of several channels: two overlap where one would serialise."""

from typing import Any

import numpy as np
import pytest

from tests.kinds import ENGINES
from tests.language.bed import Bed
from tilewright.engine import EngineKind

SMALL_WINDOW = ("pe.dma.in_flight_bytes=1 KiB", "cube.hbm.model=simple")
NUM_BYTES = 8192  # of an access, eight windows


def load_all(x: Any, count: Any, tl: Any) -> None:
    for number in range(count):
        tl.load(x + number * 2048 + tl.arange(0, 2048))


def store_all(x: Any, count: Any, tl: Any) -> None:
    value = tl.zeros((2048,), tl.int32)
    for number in range(count):
        tl.store(x + number * 2048 + tl.arange(0, 2048), value)


def change_all(x: Any, count: Any, tl: Any) -> None:
    """Atomics are writes."""
    for number in range(count):
        tl.atomic_add(x + number * 2048 + tl.arange(0, 2048), 1, sem="relaxed")


def latency_ps(kind: EngineKind, kernel: Any, count: int, *overrides: str) -> int:
    bed = Bed(*SMALL_WINDOW, *overrides, engine=kind)
    array = bed.place(np.zeros(count * 2048, np.int32))
    return bed.launch(kernel, array, count).latency_ps


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(
    ("kernel", "key"),
    [(load_all, "read_channels"), (store_all, "write_channels"), (change_all, "write_channels")],
)
def test_two_accesses_overlap_on_two_channels_and_follow_each_other_on_one(
    kind: EngineKind, kernel: Any, key: str
) -> None:
    """A window of one packet: a channel sends a packet when the one before it is back."""
    alone = latency_ps(kind, kernel, 1)
    one, two = (latency_ps(kind, kernel, 2, f"pe.dma.{key}={count}") for count in (1, 2))
    assert one > 1.6 * alone
    assert two < 1.2 * alone


@pytest.mark.parametrize(("kernel", "other"), [(load_all, "write"), (store_all, "read")])
def test_channels_of_the_other_direction_change_nothing(kernel: Any, other: str) -> None:
    kind = EngineKind.REFERENCE
    times = {latency_ps(kind, kernel, 2, f"pe.dma.{other}_channels={count}") for count in (1, 3)}
    assert len(times) == 1


@pytest.mark.parametrize("kind", ENGINES)
def test_the_third_access_of_a_pe_with_two_channels_waits_for_the_first(kind: EngineKind) -> None:
    two = "pe.dma.read_channels=2"
    second, third, fourth = (latency_ps(kind, load_all, count, two) for count in (2, 3, 4))
    assert third > 1.6 * second
    assert fourth < 1.1 * third


def copy(x: Any, out: Any, tl: Any) -> None:
    for number in range(7):
        places = number * 512 + tl.arange(0, 512)
        tl.store(out + places, tl.load(x + places) + 1)


def test_both_engines_deal_alike_and_no_value_depends_on_it() -> None:
    found = set()
    values = np.arange(7 * 512, dtype=np.int32)
    for parameter in ENGINES:
        (kind,) = parameter.values
        assert isinstance(kind, EngineKind)
        keys = ("pe.dma.read_channels=3", "pe.dma.write_channels=2")
        bed = Bed(*SMALL_WINDOW, *keys, engine=kind)
        x, out = bed.place(values), bed.place(np.zeros_like(values))
        found.add(bed.launch(copy, x, out).latency_ps)
        assert (bed.read(out) == values + 1).all()
    assert len(found) == 1
