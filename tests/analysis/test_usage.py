"""How much blocks were used between two times."""

import numpy as np

from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.analysis.trace.servers import ServerTable
from tilewright.analysis.usage import Usage, most_used


def test_a_chain_of_products_keeps_the_gemm_unit_busy_and_nothing_else() -> None:
    def kernel(x, num: int):  # type: ignore[no-untyped-def]
        block = tl.load(x, shape=(64, 64))
        for _ in range(num):
            block = tl.dot(block, block)

    bed = Bed()
    array = bed.place(np.zeros((64, 64), np.float32))
    device = bed.workspace.device
    before = Usage.now(device)
    bed.launch(kernel, array, num=200)
    after = Usage.now(device)
    busiest, *others = most_used(before, after, ServerTable(device), 5)
    assert (busiest.name, busiest.kind) == ("sip0.cube0.pe0.gemm", "unit")
    assert 0.95 < busiest.share <= 1
    assert len(others) == 4
    assert all(block.share < 0.2 for block in others)


def test_what_was_used_before_does_not_count() -> None:
    bed = Bed()
    array = bed.place(np.zeros(1024, np.float32))
    bed.launch(lambda x: tl.load(x + tl.arange(0, 1024)), array)
    device = bed.workspace.device
    usage = Usage.now(device)
    later = Usage(usage.at_ps + 1_000_000, usage.used_ps)
    assert most_used(usage, later, ServerTable(device), 5) == []
    assert most_used(usage, usage, ServerTable(device), 5) == []
