"""Rules over several fields: each is broken once, and the error names path, line and remedy."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tilewright.errors import SpecError
from tilewright.machine.parse import parse_machine_text
from tilewright.machine.spec import CubeSpec, HbmSpec, MachineSpec

BROKEN = [
    ("packet_bytes: 1000", r"line 1: packet_bytes: found 1000 with flit_bytes 64, .*whole flits"),
    (
        "\ncube: {noc: {buffer_bytes: 512}}",
        r"line 2: cube\.noc\.buffer_bytes: found 512 with packet_bytes 1024, .*at least one packet",
    ),
    ("cube: {ucie: {buffer_bytes: 512}}", r"cube\.ucie\.buffer_bytes: found 512"),
    ("cube: {hbm: {buffer_bytes: 512}}", r"cube\.hbm\.buffer_bytes: found 512"),
    ("cube: {sram: {buffer_bytes: 512}}", r"cube\.sram\.buffer_bytes: found 512"),
    ("cube: {m_cpu: {buffer_bytes: 512}}", r"cube\.m_cpu\.buffer_bytes: found 512"),
    ("sip: {io: {buffer_bytes: 512}}", r"sip\.io\.buffer_bytes: found 512"),
    ("sip: {io_cpu: {buffer_bytes: 512}}", r"sip\.io_cpu\.buffer_bytes: found 512"),
    ("host: {pcie: {buffer_bytes: 512}}", r"host\.pcie\.buffer_bytes: found 512"),
    ("host: {in_flight_bytes: 512}", r"host\.in_flight_bytes: found 512"),
    ("fabric: {buffer_bytes: 512}", r"fabric\.buffer_bytes: found 512"),
    ("pe: {cpu: {buffer_bytes: 512}}", r"pe\.cpu\.buffer_bytes: found 512"),
    ("pe: {scheduler: {buffer_bytes: 512}}", r"pe\.scheduler\.buffer_bytes: found 512"),
    ("pe: {dma: {in_flight_bytes: 512}}", r"pe\.dma\.in_flight_bytes: found 512"),
    ("cube: {pes: 6}", r"line 1: cube\.hbm\.pseudo_channels: found 64 with 6 PEs, .* multiple"),
    (
        "cube: {pes: 4, hbm: {pseudo_channels: 48}}",
        r"cube\.hbm\.pseudo_channels: found 12 for each of 4 PEs, expected a power of two",
    ),
    ("cube: {hbm: {banks: 6}}", r"cube\.hbm\.banks: found 6, expected a power of two"),
    ("cube: {hbm: {bank_groups: 3}}", r"cube\.hbm\.bank_groups: found 3, expected a power"),
    ("cube: {hbm: {stack_ids: 3}}", r"cube\.hbm\.stack_ids: found 3, expected a power of two"),
    ("cube: {hbm: {row_bytes: 1000}}", r"cube\.hbm\.row_bytes: found 1000, expected a power"),
    ("cube: {hbm: {burst_bytes: 48}}", r"cube\.hbm\.burst_bytes: found 48, expected a power"),
    ("cube: {hbm: {interleave_bytes: 300}}", r"cube\.hbm\.interleave_bytes: found 300, .*power"),
    ("cube: {hbm: {interleave_bytes: 16}}", r"found 16 with burst_bytes 32, .*one burst"),
    ("cube: {hbm: {row_bytes: 16}}", r"row_bytes: found 16 with burst_bytes 32"),
    ("cube: {hbm: {interleave_bytes: 2 KiB}}", r"found 2048 with packet_bytes 1024, .*at most one"),
    ("cube: {hbm: {capacity_bytes: 1_000_000}}", r"capacity_bytes: .*whole rows in every bank"),
    ("cube: {hbm: {address_map: [burst, row]}}", r"address_map: found burst, row, expected each"),
    (
        "cube: {hbm: {address_map: [row, burst, column, bank, bank_group, stack_id]}}",
        r"address_map: found row first, expected burst first",
    ),
    ("cube: {hbm: {drain_low_bursts: 96}}", r"drain_low_bursts: found 96 with drain_high_bursts"),
    ("cube: {hbm: {drain_high_bursts: 129}}", r"drain_high_bursts: found 129 with write_queue"),
    ("cube: {hbm: {read_queue_bursts: 7}}", r"read_queue_bursts: found 7, .* at least 8"),
    ("cube: {hbm: {timing: {ccd_s_clocks: 1}}}", r"ccd_s_clocks: found 1 with bl_clocks 2"),
    ("cube: {hbm: {refresh: {all_bank_ps: 4 us}}}", r"all_bank_ps: found 4000000 with interval"),
    ("cube: {noc: {hole_rows: 5}}", r"hole_rows: found a hole of 5 in a mesh of 6 rows"),
    ("cube: {noc: {columns: 3}}", r"line 1: cube\.noc\.hole_columns: found a hole of 2 in a mesh"),
    ("cube: {noc: {hole_rows: 0}}", r"hole_rows: found a hole of 0 rows and 2 columns"),
    ("cube: {pes: 32}", r"cube\.pes: found 32 PEs, expected at most 16.*this layout is impossible"),
    (
        "cube: {noc: {kind: ring, routers: 4}}",
        r"line 1: cube\.pes: found 8 PEs, expected at most 4",
    ),
    ("cube: {ucie: null}", r"line 1: cube\.ucie: found no die-to-die ports with 16 cubes a SIP"),
    ("sip: {rows: 1, columns: 1, io: null}", r"sip\.io: found no IO chiplet with 2 SIPs, expected"),
    ("sip: {count: 1, io: null}", r"sip\.io: found no IO chiplet with 16 cubes a SIP"),
    ("fabric: {columns: 2}", r"fabric\.columns: found 2 with kind switch"),
    ("sip: {count: 5}\nfabric: {kind: torus, columns: 2}", r"line 2: fabric\.columns: .* 5 SIPs"),
    ("sip: {count: 17}", r"line 1: sip\.count: found 17 SIPs with 4 address bits"),
    ("sip: {columns: 5}", r"line 1: sip\.rows: found 20 cubes with 5 address bits"),
    ("cube: {hbm: {capacity_bytes: 256 GiB}}", r"capacity_bytes: .*at most 137438953472: the HBM"),
    ("address: {offset_bits: 36}", r"line 1: cube\.hbm\.capacity_bytes: found 51539607552 bytes"),
    ("address: {sip_bits: 20, die_bits: 20}", r"address\.offset_bits: found 82 bits in all"),
    ("pe: {tcm: {reserved_bytes: 16 MiB}}", r"pe\.tcm\.reserved_bytes: found 16777216 with capac"),
    ("pe: {mmu: {page_bytes: 60 KiB}}", r"pe\.mmu\.page_bytes: found 61440, expected a power of"),
    ("packet_bytes: 2 MiB", r"packet_bytes: found '2 MiB', expected at most 1048576"),
    ("host: {command_bytes: 1 MiB}", r"command_bytes: found '1 MiB', expected at most 65536"),
    (
        "pe: {dma: {in_flight_bytes: 32 GiB}}",
        r"in_flight_bytes: found \d+ bytes: 33554432 packets",
    ),
    ("pe: {dma: {read_channels: 2048}}", r"read_channels: found 2048, expected at most 1024"),
    ("fabric: {latency_ps: 2 s}", r"latency_ps: found '2 s', expected at most 1099511627776"),
    (
        "cube: {hbm: {pseudo_channels: 16384}}",
        r"found 2048 for each of 8 PEs, expected at most 1024",
    ),
    ("cube: {hbm: {banks: 32}}", r"banks: found 128 in a pseudo-channel.* expected at most 64"),
    (
        "cube: {hbm: {row_bytes: 32, banks: 1, stack_ids: 1}}",
        r"interleave_bytes: found 256 with 64 bytes in one row of all banks, expected at most one",
    ),
    (
        "cube: {hbm: {row_bytes: 2 MiB, burst_bytes: 32}}",
        r"row_bytes: found 2097152 bursts in one row of all banks, expected at most 1048576",
    ),
    (
        "packet_bytes: 512 KiB\ncube: {hbm: {interleave_bytes: 256 KiB, row_bytes: 16 KiB}}",
        r"interleave_bytes: found 8192 bursts of a pseudo-channel, expected at most 4096",
    ),
    (
        "cube: {hbm: {address_map: [burst, column, row, bank, bank_group, stack_id]}}",
        r"address_map: found stack_id last, expected row last",
    ),
    (
        "cube: {hbm: {refresh: {interval_ps: 600 ns}}}",
        r"refresh\.interval_ps: found 600000 for a refresh of 530000 ps and .* above 660500, so",
    ),
    (
        "cube:\n  hbm:\n    timing: {rc_clocks: 900_000}",
        r"line 3: cube\.hbm\.refresh\.interval_ps: found 3900000 .*\(rc_clocks 900000, and",
    ),
    ("cube: {hbm: {timing: {rtp_clocks: 0}}}", r"rtp_clocks: found 0, expected at least 1"),
    (
        "cube: {hbm: {model: simple, simple_efficiency_percent: 1, timing: {clock_ps: 1 us}}}",
        r"simple_efficiency_percent: found 1 % of 32 bytes every 2000000 ps, .* a microsecond",
    ),
    (
        "pe: {tcm: {capacity_bytes: 20 KiB, reserved_bytes: 8 KiB}}",
        r"tcm\.capacity_bytes: found 20480 with reserved_bytes 8192, .* 16384 beside them",
    ),
    ("pe: {tcm: {reserved_bytes: 512}}", r"reserved_bytes: found 512 with 2 SIPs, .* least 1024"),
    ("pe: {registers: {capacity_bytes: 512}}", r"registers\.capacity_bytes: found 512, .* 1024"),
    ("pe: {mmu: {page_bytes: 256}}", r"mmu\.page_bytes: found 256, expected at least 512"),
    (
        "pe: {mmu: {page_bytes: 1 GiB}}",
        r"capacity_bytes: found 6442450944 bytes for each of 8 PEs, in pages of 1073741824",
    ),
    ("cube: {noc: {rows: 1_000_000, columns: 1_000_000}}", r"found a machine of about \d+ nodes"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_fields_that_do_not_fit_together_are_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_machine_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "sip: {count: 17}\naddress: {sip_bits: 5}",  # wider than 51 bits
        "sip: {columns: 5}\naddress: {die_bits: 6}",
        "address: {sip_bits: 10, die_bits: 11, offset_bits: 42}",
        "cube: {hbm: {capacity_bytes: 128 GiB}}",
        "cube: {noc: {hole_rows: 4, hole_columns: 2}}",
        "cube: {noc: {hole_rows: 0, hole_columns: 0}, pes: 32}",
        "cube: {pes: 16}",
        "cube: {hbm: {read_queue_bursts: 8, drain_low_bursts: 95}}",
        "fabric: {kind: mesh, columns: 2}",
        "cube: {hbm: {refresh: {kind: none, all_bank_ps: 4 us}}}",
        "cube: {hbm: {refresh: {interval_ps: 660501}}}",
        "cube: {hbm: {model: simple, refresh: {interval_ps: 600 ns}, banks: 32}}",
        "cube: {hbm: {banks: 16}}",
        "pe: {tcm: {capacity_bytes: 17 KiB, reserved_bytes: 1 KiB}}",
        "packet_bytes: 64\ncube: {hbm: {interleave_bytes: 64}}",
    ],
)
def test_the_last_value_that_fits_is_taken(text: str) -> None:
    parse_machine_text(text)


def test_a_spec_made_in_python_obeys_the_same_rules() -> None:
    with pytest.raises(ValidationError, match=r"banks: found 3, expected a power of two"):
        HbmSpec(banks=3)


@given(
    log_interleave=st.integers(5, 8),
    flit_bytes=st.sampled_from([8, 16, 64]),
    num_flits=st.integers(1, 16),
    log_channels=st.integers(0, 3),
    log_burst=st.integers(4, 5),
)
def test_the_rule_counts_the_most_bursts_that_a_packet_can_bring_to_a_channel(
    log_interleave: int, flit_bytes: int, num_flits: int, log_channels: int, log_burst: int
) -> None:
    interleave, burst, channels = 2**log_interleave, 2**log_burst, 2**log_channels
    packet = max(flit_bytes * num_flits, -(-interleave // flit_bytes) * flit_bytes)
    hbm = HbmSpec(interleave_bytes=interleave, burst_bytes=burst, pseudo_channels=8 * channels)
    spec = MachineSpec(packet_bytes=packet, flit_bytes=flit_bytes, cube=CubeSpec(hbm=hbm))
    most = max(
        most_bursts(range(start, start + packet), interleave, burst, channels)
        for start in range(0, interleave * channels, 4)
    )
    assert most == spec.bursts_per_channel()


def most_bursts(addresses: range, interleave: int, burst: int, channels: int) -> int:
    """By counting: the bursts that each channel has to serve for these bytes."""
    first, last = addresses[0] // burst, addresses[-1] // burst
    channel_of = [index * burst // interleave % channels for index in range(first, last + 1)]
    return max(Counter(channel_of).values())
