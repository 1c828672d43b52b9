"""Translation by compiled code, beside its definition in Python."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.engine import EngineKind

PLACES = st.lists(st.integers(0, 7), min_size=1, max_size=30)


def touch(x_ptr: Any, out_ptr: Any, places: tuple[int, ...]) -> None:
    total = tl.zeros([4], tl.float32)
    for place in places:
        total += tl.load(x_ptr + place * 1024 + tl.arange(0, 4))
    tl.store(out_ptr + tl.arange(0, 4), total)


@needs_both_engines
@settings(max_examples=20)
@given(launches=st.lists(PLACES, min_size=1, max_size=3))
def test_compiled_code_keeps_and_loses_the_pages_that_the_mmu_does(
    launches: list[list[int]],
) -> None:
    """Launches find what the ones before them have walked for."""
    seen = []
    for kind in EngineKind:
        bed = Bed("pe.mmu.page_bytes=4096", "pe.mmu.tlb_entries=3", engine=kind)
        x = bed.place(np.arange(8 * 1024, dtype=np.float32))
        out = bed.place(np.zeros(4, np.float32))
        results = [bed.launch(touch, x, out, tuple(places), grid=(2,)) for places in launches]
        state = bed.workspace._mmu(bed.pes[0]).state
        kept = [(page, [walk.command for walk in walks]) for page, walks in state.tlb.items()]
        seen.append((results, state.hits, state.walks, kept, bed.read(out).tobytes()))
    assert seen[0] == seen[1]
