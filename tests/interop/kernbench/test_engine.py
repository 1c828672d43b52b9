"""Messages to memories, DMAs and page tables, as completions and traces tell of them."""

from typing import Any

import numpy as np
import pytest

from tests.interop.kernbench.engines import (
    HOME,
    carry_out,
    dma,
    engine,
    hbm,
    launch,
    machine,
    map_,
    read,
    unmap,
    write,
)
from tilewright.errors import PageFaultError, ProgramError, RequestError, SanitizerError
from tilewright.host import DPPolicy, PeCoord
from tilewright.interop.kernbench.engine import GraphEngine
from tilewright.interop.kernbench.message import ResponseMsg, ScalarArg
from tilewright.interop.kernbench.topology import resolve_topology
from tilewright.interop.kernbench.value import Completion, RequestHandle
from tilewright.machine.coords import CubeCoord
from tilewright.memory.address import VirtualByte

VA = 0x8_0000_0000  # above all that tensors of a test get


def test_what_is_written_is_read_back_and_takes_time() -> None:
    on = engine()
    sent = np.arange(512, dtype=np.float32)
    handle = on.submit(write(hbm(4096), 2048, src_kind="host_buffer", host_buffer=sent))
    sent[:] = 0  # the buffer was read when the message was submitted
    on.wait(handle)
    completion, trace = on.get_completion(handle)
    assert completion == Completion(ok=True)
    assert trace["msg_type"] == "memory_write"
    assert trace["submitted_ns"] == 0
    assert trace["completed_ns"] * 1000 == on.host.now_ps == trace["total_ns"] * 1000
    _, seen = carry_out(on, read(hbm(4096), 2048))
    assert seen["data"] == np.arange(512, dtype=np.float32).tobytes()
    assert seen["submitted_ns"] == trace["completed_ns"] < seen["completed_ns"]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [("zero", bytes(8)), (171, b"\xab" * 8), (b"abc", b"abcabcab"), (None, b"\x07" * 8)],
)
def test_a_pattern_fills_the_bytes(pattern: Any, wanted: bytes) -> None:
    on = engine()
    carry_out(on, write(hbm(), 8, pattern=7))
    _, trace = carry_out(on, write(hbm(), 8, pattern=pattern))
    assert trace["total_ns"] > 0
    assert carry_out(on, read(hbm(), 8))[1]["data"] == wanted


def test_tcm_and_sram_are_memories_too() -> None:
    on, addresses = engine(), machine().addresses
    tcm = addresses.tcm(HOME, 8 << 20).value
    sram = addresses.sram(CubeCoord(0, 0), 64).value
    for address, memory in ((tcm, "sip0.cube0.pe1.tcm"), (sram, "sip0.cube0.sram")):
        _, trace = carry_out(on, write(address, 16, pattern=3))
        assert trace["memory"] == memory
        assert carry_out(on, read(address, 16))[1]["data"] == b"\x03" * 16


def test_the_trace_has_the_ids_the_size_and_the_path() -> None:
    on = engine()
    _, trace = carry_out(on, read(hbm(), 64, request_id="mine", correlation_id="run 7"))
    assert (trace["request_id"], trace["correlation_id"]) == ("mine", "run 7")
    assert trace["nbytes"] == 64
    assert (trace["path"][0], trace["path"][-1]) == ("host", "sip0.cube0.hbm_ctrl.pe1")
    assert len(set(trace["path"])) == len(trace["path"]) > 3


def test_equal_request_ids_have_handles_of_their_own() -> None:
    on = engine()
    first, second = (on.submit(write(hbm(), 8, pattern=n)) for n in (1, 2))
    assert isinstance(first, RequestHandle)
    assert first != second
    on.wait(second)
    assert on.get_completion(second)[1]["request_id"] == "r"


def test_a_message_under_way_has_no_completion_yet() -> None:
    on = engine()
    handle = on.submit(write(hbm(), 8, pattern=1))
    with pytest.raises(RequestError, match=r"under way, expected a complete one; wait for it"):
        on.get_completion(handle)
    on.wait(on.submit(write(hbm(4096), 65_536)))  # takes longer, so the first is complete too
    assert on.get_completion(handle)[0].ok
    with pytest.raises(RequestError, match="a handle of this engine"):
        engine().wait(handle)


def test_messages_under_way_share_the_links() -> None:
    alone, both = engine(), engine()
    size = 64 * 1024
    _, trace = carry_out(alone, write(hbm(), size))
    handles = [both.submit(write(hbm(offset), size)) for offset in (0, size)]
    for handle in handles:
        both.wait(handle)
    last_ns = max(both.get_completion(handle)[1]["completed_ns"] for handle in handles)
    assert 1.6 * trace["total_ns"] < last_ns < 2.1 * trace["total_ns"]


def test_a_dma_takes_longer_from_further_away_and_changes_no_byte() -> None:
    on = engine()
    carry_out(on, write(hbm(), 4096, pattern=5))
    for direction in ("read", "write"):
        times = []
        for by in (HOME, PeCoord(0, 0, 0), PeCoord(0, 1, 0)):
            _, trace = carry_out(on, dma(by, hbm(), 4096, direction=direction))
            assert trace["path"][-1] == "sip0.cube0.hbm_ctrl.pe1"
            assert trace["path"][0] == f"sip{by.sip}.cube{by.cube}.pe{by.pe}.dma"
            times.append(trace["total_ns"])
        assert times == sorted(set(times))
    assert carry_out(on, read(hbm(), 4096))[1]["data"] == b"\x05" * 4096


def test_messages_and_tensors_are_the_same_memory() -> None:
    on = engine()
    tensor = on.host.zeros(8, "i32", dp=DPPolicy(num_pes=1, num_cubes=1))
    home = PeCoord(0, 0, 0)
    (run,) = on.host.driver.mmus[home].table.runs(VirtualByte(tensor.address), 32)
    data = np.arange(8, dtype=np.int32)
    carry_out(on, write(run[0], 32, home, src_kind="host_buffer", host_buffer=data))
    assert tensor.numpy().tolist() == data.tolist()


# -- page tables -----------------------------------------------------------------------------------


def mapped(on: GraphEngine) -> set[PeCoord]:
    return {pe for pe, mmu in on.host.driver.mmus.items() if len(mmu.table)}


@pytest.mark.parametrize(
    ("targets", "count"),
    [
        ({}, 16),
        ({"target_sips": (0,), "target_cubes": (1,)}, 4),
        ({"target_cubes": 0, "target_pe": 1}, 1),
        ({"target_pe": (0, 1), "target_sips": 0}, 8),
        ({"target_pe": (1,)}, 4),
    ],
)
def test_a_map_reaches_the_pes_that_it_names(targets: dict[str, Any], count: int) -> None:
    on, grid = engine(), machine().grid
    _, trace = carry_out(on, map_(VA, hbm(), 64, **targets))

    def has(field: str, unit: int) -> bool:
        value = targets.get(field, "all")
        return value == "all" or unit in (value if isinstance(value, tuple) else (value,))

    wanted = {
        pe
        for pe in grid.pes()
        if has("target_sips", pe.sip) and has("target_cubes", pe.cube) and has("target_pe", pe.pe)
    }
    assert mapped(on) == wanted
    assert trace["num_pes"] == len(wanted) == count
    assert carry_out(on, unmap(VA, 64, **targets))[0].ok
    assert not mapped(on)


def test_a_map_of_mapped_bytes_fails_its_completion_and_nothing_else() -> None:
    on = engine()
    assert carry_out(on, map_(VA, hbm(), 64))[0].ok
    completion, trace = carry_out(on, map_(VA + 32, hbm(4096), 8, request_id="again"))
    assert not completion.ok
    assert completion.error_code == "RegistryError"
    assert completion.error_message is not None
    assert "bytes that are free; unmap them first" in completion.error_message
    assert trace["total_ns"] > 0
    assert any("mmu_map 'again'" in note for note in on.host.notes)
    completion, _ = carry_out(on, unmap(VA, 32))
    assert completion.error_message is not None
    assert "a range as it was mapped" in completion.error_message
    on.host.wait_all()  # told by completions, not raised again
    assert carry_out(on, unmap(VA, 64))[0].ok


def test_a_kernel_access_to_an_unmapped_address_is_an_error() -> None:
    on = engine()

    def kernel(address: int, tl: Any) -> None:
        tl.load(address, (4,), "f16")

    on.kernels["reader"] = kernel
    physical = ScalarArg("i32", hbm(4096))  # KernBench would take it as it is
    handle = on.submit(launch("reader", physical, target_cubes=0, target_pe=1))
    with pytest.raises(PageFaultError, match=r"kernel 'reader' on sip0\.cube0\.pe1"):
        on.wait(handle)
    completion, _ = on.get_completion(handle)
    assert (completion.ok, completion.error_code) == (False, "LaunchEndedError")


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (write(hbm(), 8, pattern="ones"), r"'r', pattern: found 'ones', expected \"zero\""),
        (write(hbm(), 8, pattern=256), "pattern: found 256"),
        (write(hbm(), 8, pattern=b""), "pattern: found b''"),
        (write(hbm(), 8, src_kind="file"), "src_kind: found 'file'"),
        (
            write(hbm(), 8, src_kind="host_buffer", host_buffer=b"abc"),
            "host_buffer: found 3 bytes, expected nbytes=8",
        ),
        (write(hbm(), 8, src_kind="host_buffer"), "host_buffer: found NoneType"),
        (write(hbm(), 0), "nbytes: found 0 bytes"),
        (write(hbm(), 2**60), r"nbytes: .* up to the end of sip0\.cube0\.pe1\.hbm"),
        (write(hbm(), 8, pe=PeCoord(0, 0, 0)), "dst_pa: .* which is in sip0.cube0.pe1.hbm"),
        (write(2**50, 8), "dst_pa: found 0x4000000000000, expected an address in HBM"),
        (write(hbm(), 8, dst_pe=9), "dst_pe: found 9, expected a number from 0 to 3"),
        (write(hbm(), 8, dst_sip=True), "dst_sip: found True"),
        (write(hbm(), 8, target_cubes=(0, 1)), r"target_cubes: found \(0, 1\)"),
        (write(hbm(), 8, target_pe=0), "target_pe: found 0, expected 1, as the message says"),
        (write(hbm(), 8, request_id=""), "request_id: found ''"),
        (read(hbm(), -4), "MemoryReadMsg 'r', nbytes: found -4 bytes"),
        (read(-1, 4), "src_pa: found -1"),
        (read(1.5, 4), "src_pa: found 1.5, expected a physical address as an int"),  # type: ignore[arg-type]
        (dma(HOME, hbm(), 8, direction="both"), "direction: found 'both'"),
        (dma(PeCoord(0, 0, 7), hbm(), 8), "src_pe: found 7"),
        (map_(VA, 2**50, 8), r"entries\[0\]\['pa'\]: found 0x4000000000000"),
        (map_(VA, hbm(), 0), r"entries\[0\]\['size'\]: found 0"),
        (map_(VA, hbm(), 8, target_sips=(0, 0)), "target_sips: .*each unit once"),
        (map_(VA, hbm(), 8, target_cubes="some"), "target_cubes: found 'some'"),
        (map_(VA, hbm(), 8, target_pe=()), "target_pe: found"),
        (map_(VA, hbm(), 8, entries=()), "entries: found"),
        (map_(VA, hbm(), 8, entries=({"va": VA, "size": 8},)), "exactly va, pa, size"),
        (unmap(VA, 8, entries=({"va": "a", "size": 8},)), r"entries\[0\]\['va'\]: found 'a'"),
        (ResponseMsg("c", "r", Completion(ok=True)), "a response, expected a request"),
        ("write", "build one of the message types"),
    ],
)
def test_a_wrong_message_is_refused_by_its_field_and_nothing_is_sent(
    message: Any, words: str
) -> None:
    on = engine()
    with pytest.raises(RequestError, match=words):
        on.submit(message)
    assert on.host.handles() == []


def test_an_engine_takes_a_graph() -> None:
    on = GraphEngine(resolve_topology({"system": {"sips": {"count": 1}}}))
    assert on.host.machine.grid.num_pes == 128
    assert carry_out(on, read(0, 64, PeCoord(0, 0, 0)))[0].ok
    with pytest.raises(ProgramError, match=r"GraphEngine\(resolve_topology"):
        GraphEngine("topology.yaml")  # type: ignore[arg-type]


# -- races -----------------------------------------------------------------------------------------


def test_two_writes_to_one_address_under_way_are_a_race() -> None:
    on = engine(sanitize=True)
    for value in (1, 2):
        on.submit(write(hbm(), 64, pattern=value))
    with pytest.raises(SanitizerError, match="race") as caught, on.host:
        on.host.wait_all()
    assert f"{__file__}:" in str(caught.value)  # the line that submitted them


def test_two_writes_one_after_the_other_are_none() -> None:
    on = engine(sanitize=True)
    with on.host:
        for value in (1, 2):
            assert carry_out(on, write(hbm(), 64, pattern=value))[0].ok
