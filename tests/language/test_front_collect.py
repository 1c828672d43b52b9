"""Objects of compiled code show the garbage collector what they refer to."""

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kinds import needs_both_engines
from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.device.dma import ChannelDeal
from tilewright.device.mmu import Mmu
from tilewright.engine import EngineKind
from tilewright.executor.program import running_program
from tilewright.machine.spec import MmuSpec
from tilewright.memory.page_table import PageTable
from tilewright.native import native_core

PAGE = 64


class Owner:
    """Holds an object of compiled code that refers back to it."""

    held: Any = None

    def locate(self, physical: int) -> tuple[int, int, int]:
        return 0, physical, PAGE


@needs_both_engines
def test_the_paths_of_a_pe_go_with_the_device_that_they_ask() -> None:
    core: Any = native_core()
    mmu = Mmu("pe.mmu", MmuSpec(page_bytes=PAGE), PageTable("test", PAGE))
    deal = ChannelDeal(num_reads=1, num_writes=1)
    assert is_collected(lambda owner: core.PathFinder(mmu, owner.locate, deal))


@needs_both_engines
def test_a_log_of_effects_goes_with_the_memories_that_it_writes() -> None:
    core: Any = native_core()
    assert is_collected(lambda owner: core.EffectLog([owner]))


@pytest.mark.parametrize("engine", EngineKind)
def test_a_tile_that_only_a_circle_holds_gives_its_space_back_when_it_is_found(
    engine: EngineKind,
) -> None:
    free_bytes = []

    def kernel(x_ptr: Any) -> None:
        issuer = running_program().issuer
        free_bytes.append(issuer.far_free_bytes)
        circle: list[Any] = [tl.load(x_ptr + tl.arange(0, 256))]
        circle.append(circle)
        free_bytes.append(issuer.far_free_bytes)
        del circle
        gc.collect()
        free_bytes.append(issuer.far_free_bytes)

    bed = Bed(engine=engine)
    bed.launch(kernel, bed.place(np.ones(256, np.float32)))
    before, held, after = free_bytes
    assert (held, after) == (before - 1024, before)


@pytest.mark.parametrize("engine", EngineKind)
def test_a_circle_of_a_tile_and_its_program_is_found_in_silence(
    engine: EngineKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)

    def kernel(x_ptr: Any) -> None:
        circle: list[Any] = [tl.load(x_ptr + tl.arange(0, 256))]
        circle.append(circle)

    bed = Bed(engine=engine)
    bed.launch(kernel, bed.place(np.ones(256, np.float32)))
    del bed
    gc.collect()
    assert complaints == []


def is_collected(hold: Callable[[Owner], Any]) -> bool:
    """Whether a circle of an owner and what it holds is found, once nobody else knows it."""
    owner = Owner()
    owner.held = hold(owner)
    seen = weakref.ref(owner)
    del owner
    gc.collect()
    return seen() is None
