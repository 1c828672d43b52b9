"""The bytes of a Perfetto trace, by the numbers of the public schema and read back."""

from io import BytesIO

from tests.report.perfetto.read_trace import read_trace
from tilewright.report.perfetto.writer import PerfettoWriter


def written(limit: int = 100) -> tuple[PerfettoWriter, BytesIO]:
    stream = BytesIO()
    return PerfettoWriter(stream, limit=limit), stream


def test_a_slice_reads_back_with_its_track_times_arguments_and_arrows() -> None:
    writer, stream = written()
    track = writer.add_track("gemm", writer.add_process("sip0.cube0.pe0"))
    writer.add_slice(track, "dot k.py:3", 1_999, 5_000, {"command": 7, "line": "k.py:3"}, [9])
    trace = read_trace(stream.getvalue())
    (one,) = trace.slices["sip0.cube0.pe0", "gemm"]
    assert (one.name, one.start_ns, one.end_ns, one.flows) == ("dot k.py:3", 1, 5, [9])
    exact = {"start_ps": 1_999, "end_ps": 5_000, "command": 7, "line": "k.py:3"}
    assert one.arguments == exact


def test_the_fields_have_the_numbers_of_the_public_schema() -> None:
    """Trace.packet 1; TracePacket.timestamp 8, sequence 10, event 11; TrackEvent as below."""
    writer, stream = written()
    writer.add_value(writer.add_counter("link", writer.add_process("links"), "%"), 2_000, 50.0)
    packets = stream.getvalue()
    event = bytes.fromhex("48045802e1020000000000004940")  # type 9, track 11, value 44
    packet = b"\x40\x02" + b"\x50\x01" + b"\x5a" + bytes([len(event)]) + event
    assert packets.endswith(b"\x0a" + bytes([len(packet)]) + packet)


def test_beyond_its_limit_a_trace_counts_what_it_leaves_out() -> None:
    writer, stream = written(limit=2)
    track = writer.add_track("gemm", writer.add_process("pe"))
    for place in range(5):
        writer.add_slice(track, "dot", 1_000 * place, 1_000 * place + 500, {})
    assert (writer.num_events, writer.num_left_out, writer.is_full) == (2, 3, True)
    assert len(read_trace(stream.getvalue()).slices["pe", "gemm"]) == 2


def test_a_trace_is_whole_after_every_packet() -> None:
    writer, stream = written()
    track = writer.add_track("gemm", writer.add_process("pe"))
    writer.add_slice(track, "dot", 0, 10, {})
    before = stream.getvalue()
    writer.add_slice(track, "dot", 10, 20, {})
    assert stream.getvalue().startswith(before)
    assert len(read_trace(before).slices["pe", "gemm"]) == 1
