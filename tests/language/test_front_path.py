"""Translation by compiled code, beside its definition in Python."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.host import DPPolicy, RuntimeContext
from tilewright.memory import MapMsg, PhysicalByte, RangeMapping, VirtualByte, VirtualRange

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
        state = bed.workspace._mmus[bed.pes[0]].state
        kept = [(page, [walk.command for walk in walks]) for page, walks in state.tlb.items()]
        seen.append((results, state.hits, state.walks, kept, bed.read(out).tobytes()))
    assert seen[0] == seen[1]


ONE = DPPolicy(num_sips=1, num_cubes=1, num_pes=1)
SEGMENT, PITCH, NUM_SEGMENTS = 16, 48, 8


def load_segments(x: Any, out: Any) -> None:
    rows, columns = tl.arange(0, NUM_SEGMENTS)[:, None], tl.arange(0, SEGMENT)[None, :]
    tl.store(out + rows * SEGMENT + columns, tl.load(x + rows * PITCH + columns))


def seen_with(places: list[int] | None, kind: EngineKind) -> tuple[Any, ...]:
    """Times, pages and values if segment i of x lies at segment ``places[i]``, with gaps between.

    Without places all of x is mapped where it is.
    """
    torch = RuntimeContext("ahbm-small", engine=kind)
    values = np.arange(NUM_SEGMENTS * PITCH) % 251
    x = torch.empty(values.size, "u8", dp=ONE).copy_(values)
    out = torch.zeros(NUM_SEGMENTS * SEGMENT, "u8", dp=ONE)
    plan = torch.driver.tensors[x.address].mapping
    (undo,), (step,) = plan.unmap_messages(), plan.map_messages()
    torch.wait(torch.submit(undo))
    (whole,) = step.mappings
    starts = [] if places is None else list(enumerate(places))
    ranges = [
        RangeMapping(
            VirtualRange(VirtualByte(x.address + number * PITCH), SEGMENT),
            PhysicalByte(whole.physical + place * PITCH),
        )
        for number, place in starts
    ]
    torch.wait(torch.submit(MapMsg(step.target, tuple(ranges) or step.mappings)))
    start_ps = torch.now_ps
    report = torch.launch(load_segments, x, out).report
    (pe,) = x.placement.homes
    state = torch.driver.mmus[pe].state
    found = out.numpy().reshape(NUM_SEGMENTS, SEGMENT)
    expected = values.reshape(NUM_SEGMENTS, PITCH)[range(8) if places is None else places, :SEGMENT]
    np.testing.assert_array_equal(found, expected)
    return start_ps, report.latency_ps, state.hits, state.walks


@needs_both_engines
def test_gaps_between_segments_take_no_time() -> None:
    assert (
        len({seen_with(places, kind) for kind in EngineKind for places in (None, [*range(8)])}) == 1
    )


@needs_both_engines
@settings(max_examples=8)
@given(places=st.permutations(range(NUM_SEGMENTS)))
def test_segments_of_one_page_may_lie_anywhere(places: list[int]) -> None:
    """The first of two segments that stay neighbours takes the second along."""
    assert seen_with(places, EngineKind.NATIVE) == seen_with(places, EngineKind.REFERENCE)
