from functools import cache
from typing import Any

import numpy as np
import pytest

from tilewright.device.dma import Access
from tilewright.errors import RequestError
from tilewright.host import DPPolicy, PeCoord, RuntimeContext
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.memory.address import PhysicalByte, RangeMapping, VirtualByte, VirtualRange
from tilewright.memory.mapping import MapMsg, MapTarget, UnmapMsg
from tilewright.runtime.launch.bind import LaunchOptions
from tilewright.runtime.message import (
    KernelLaunchMsg,
    MemoryReadMsg,
    MemoryWriteMsg,
    PeDmaMsg,
)

HOME = PeCoord(0, 0, 1)


@cache
def machine() -> Machine:
    return build_machine(parse_machine("ahbm-small"))


def context() -> RuntimeContext:
    return RuntimeContext(machine())


def address(torch: RuntimeContext, offset: int = 0) -> int:
    return torch.machine.addresses.hbm(HOME, offset).value


def test_what_is_written_is_read_back_and_takes_time() -> None:
    torch = context()
    sent = bytes(range(256)) * 16
    write = torch.submit(MemoryWriteMsg(address(torch, 4096), len(sent), data=sent))
    assert not torch.is_completed(write)
    torch.wait(write)
    written_ps = torch.now_ps
    read = MemoryReadMsg(address(torch, 4096), len(sent))
    handle = torch.submit(read)
    assert read.data is None
    torch.wait(handle)
    assert read.data == sent
    assert 0 < written_ps < torch.now_ps


def test_a_pattern_is_repeated() -> None:
    torch = context()
    torch.submit(MemoryWriteMsg(address(torch), 8, pattern=b"abc"))
    read = MemoryReadMsg(address(torch), 8)
    torch.wait_all()
    torch.wait(torch.submit(read))
    assert read.data == b"abcabcab"


def test_a_pe_moves_bytes_for_their_time_alone() -> None:
    times = {}
    for pe in (HOME, PeCoord(0, 0, 0)):
        for access in Access:
            torch = context()
            torch.wait(torch.submit(PeDmaMsg(pe, address(torch), 4096, access)))
            times[pe, access] = torch.now_ps
    for access in Access:
        assert 0 < times[HOME, access] < times[PeCoord(0, 0, 0), access]


def test_requests_under_way_share_the_links() -> None:
    alone, both = context(), context()
    size = 64 * 1024
    alone.wait(alone.submit(MemoryWriteMsg(address(alone), size)))
    for offset in (0, size):
        both.submit(MemoryWriteMsg(address(both, offset), size))
    both.wait_all()
    assert 1.6 * alone.now_ps < both.now_ps < 2.1 * alone.now_ps


def test_a_launch_is_a_message_too() -> None:
    torch = context()
    tensor = torch.zeros(4, "i32", dp=DPPolicy(num_pes=1, num_cubes=1))

    def kernel(x: Any, value: Any, tl: Any) -> None:
        tl.store(x, value)

    options = LaunchOptions(name="by hand")
    handle = torch.submit(KernelLaunchMsg(kernel, (tensor,), {"value": 6}, options))
    assert torch.wait(handle).ok
    assert (tensor[0], torch.reports[-1].name) == (6, "by hand")


def test_no_program_of_a_launch_begins_before_its_earliest_start() -> None:
    torch = context()
    starts: list[int] = []

    def kernel(tl: Any) -> None:
        starts.append(torch.now_ps + 0 * int(tl.program_id("pe")))

    options = LaunchOptions(on=[PeCoord(0, 0, 0), HOME], earliest_start_ps=10_000_000)
    torch.wait(torch.submit(KernelLaunchMsg(kernel, options=options)))
    assert starts == [10_000_000] * 2
    report = torch.reports[-1]
    assert (report.dispatch_ps, report.skew_ps) == (10_000_000, 0)


def test_a_report_tells_the_longest_time_of_a_pe() -> None:
    torch = context()

    def kernel(tl: Any) -> None:
        block = tl.zeros((64, 64), tl.float32)
        for _ in range(1 + 100 * int(tl.program_id("pe"))):
            block = block + 1.0

    torch.launch(kernel, on=[PeCoord(0, 0, 0)])
    short = torch.reports[-1]
    assert short.longest_pe_ps == short.execution_ps
    torch.launch(kernel, on=[PeCoord(0, 0, 0), HOME])
    both = torch.reports[-1]
    assert 10 * short.longest_pe_ps < both.longest_pe_ps <= both.execution_ps


def test_a_map_that_fails_fails_its_request_alone() -> None:
    torch = context()
    mapping = RangeMapping(VirtualRange(VirtualByte(99), 2), PhysicalByte(7))
    message = MapMsg(MapTarget(0, (0,)), (mapping,))
    torch.wait(torch.submit(message))
    again = torch.submit(message)
    with pytest.raises(RequestError, match=r"request 1 \(map\).*sip0.cube0.pe0.mmu"):
        torch.wait(again)
    completion = again.completion
    assert not completion.ok
    assert completion.error_code is not None
    with pytest.raises(RequestError):
        torch.wait_all()
    torch.wait(torch.submit(UnmapMsg(message.target, (mapping.virtual,))))
    assert not any(len(mmu.table) for mmu in torch.driver.mmus.values())


@pytest.mark.parametrize(
    ("offset", "num_bytes", "words"),
    [
        (0, 0, "0 bytes"),
        (0, -4, "-4 bytes"),
        (0, 2**60, "up to the end of sip0.cube0.pe1.hbm"),
    ],
)
def test_a_message_that_cannot_be_carried_out_is_refused(
    offset: int, num_bytes: int, words: str
) -> None:
    torch = context()
    with pytest.raises(RequestError, match=words):
        torch.submit(MemoryReadMsg(address(torch, offset), num_bytes))
    assert torch.handles() == []


def test_what_is_no_message_or_no_memory_is_refused() -> None:
    torch = context()
    with pytest.raises(RequestError, match="one of the message types"):
        torch.submit("write")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="memory write"):
        torch.submit(MemoryWriteMsg(2**50, 4))
    with pytest.raises(RequestError, match="3 bytes of data, expected num_bytes=4"):
        torch.submit(MemoryWriteMsg(address(torch), 4, data=b"abc"))
    with pytest.raises(RequestError, match="under way"):
        _ = torch.submit(MemoryWriteMsg(address(torch), 4)).completion


def test_bytes_and_tensors_are_the_same_memory() -> None:
    torch = context()
    tensor = torch.zeros(8, "i32", dp=DPPolicy(num_pes=1, num_cubes=1))
    tensor.copy_(np.arange(8, dtype=np.int32))
    physical = torch.driver.mmus[PeCoord(0, 0, 0)].table.runs(VirtualByte(tensor.address), 32)[0][0]
    read = MemoryReadMsg(physical, 32)
    torch.wait(torch.submit(read))
    assert read.data == np.arange(8, dtype=np.int32).tobytes()
