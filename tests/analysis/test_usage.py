"""Use of units, links, pseudo-channels and banks between two times, against known traffic."""

from typing import Any

import numpy as np
import pytest

from tests.kinds import every_engine
from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.analysis.trace.servers import ServerTable
from tilewright.analysis.usage import Usage, channel_use, most_used, resource_use
from tilewright.engine import EngineKind
from tilewright.records.run.part import ChannelUse, ResourceUse


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


CLOCK, ATTACH, GEMM = (
    "cube.hbm.timing.clock_ps",
    "cube.noc.attach_bytes_per_us",
    "pe.gemm.hz",
)
PIECE = 64  # elements of f32: 256 bytes, one pseudo-channel's turn
STRIDE = 8 * PIECE  # a turn of all 8 pseudo-channels


def load_pieces(x: Any, stride: int, num: int) -> None:
    for step in range(num):
        tl.load(x + step * stride + tl.arange(0, PIECE))


def used(kind: EngineKind, stride: int, num: int) -> tuple[dict[str, ResourceUse], ChannelUse, int]:
    bed = Bed("cube.hbm.refresh.kind=none", engine=kind)
    x = bed.place(np.zeros(STRIDE * 64, np.float32))
    device = bed.workspace.device
    bed.launch(load_pieces, x, stride=0, num=1)  # what was used before does not count
    before = Usage.now(device)
    bed.launch(load_pieces, x, stride=stride, num=num)
    after = Usage.now(device)
    servers = ServerTable(device)
    channels = channel_use(before, after, servers)
    assert channels is not None
    rows = {row.field: row for row in resource_use(before, after, servers)}
    return rows, channels, after.at_ps - before.at_ps


@every_engine
def test_pieces_of_one_channel_use_that_channel_alone(kind: EngineKind) -> None:
    """16 pieces of 8 bursts of 1 ns each; 4 of them lie in one row of 1 KiB."""
    rows, channels, span_ps = used(kind, STRIDE, 16)
    busy_ps = 16 * 8 * 1_000
    shares = [busy_ps / span_ps, *[0.0] * 7]
    assert channels.shares == pytest.approx(shares)
    assert rows[CLOCK].busy_ps == busy_ps
    assert rows[CLOCK].num_used == 1
    assert rows[CLOCK].greatest == pytest.approx(shares[0])
    assert channels.row_hits + channels.row_misses == 16 * 8
    assert sum(channels.banks) == channels.row_misses
    assert channels.row_cycle_ps == 45_000
    assert len(channels.banks) == 32


@every_engine
def test_neighbouring_pieces_use_all_channels_evenly(kind: EngineKind) -> None:
    rows, channels, span_ps = used(kind, PIECE, 16)
    assert channels.shares == pytest.approx([2 * 8 * 1_000 / span_ps] * 8)
    assert rows[CLOCK].num_used == 8
    assert rows[CLOCK].median == pytest.approx(rows[CLOCK].greatest)
    # 4 flits of 64 bytes at 256 GB/s each, from the slice to the PE
    assert rows[ATTACH].busy_ps == 16 * 4 * 250


def test_units_are_told_by_the_field_of_their_rate() -> None:
    bed = Bed()
    x = bed.place(np.zeros((64, 64), np.float32))
    device = bed.workspace.device
    before = Usage.now(device)
    bed.launch(lambda x: tl.dot(tl.load(x, shape=(64, 64)), tl.load(x, shape=(64, 64))), x)
    rows = resource_use(before, Usage.now(device), ServerTable(device))
    gemm = next(row for row in rows if row.field == GEMM)
    assert (gemm.busiest, gemm.num_used) == ("sip0.cube0.pe0.gemm", 1)
    assert gemm.busy_ps == ((64 // 16) ** 3 * 4 + 16) * 1_000
    assert [row.busy_ps for row in rows] == sorted((row.busy_ps for row in rows), reverse=True)


def test_nothing_was_used_in_no_time() -> None:
    device = Bed().workspace.device
    now = Usage.now(device)
    assert resource_use(now, now, ServerTable(device)) == ()
    assert channel_use(now, now, ServerTable(device)) is None
