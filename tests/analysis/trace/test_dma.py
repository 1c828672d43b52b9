"""Jobs of DMA channels out of single packets."""

from hypothesis import given
from hypothesis import strategies as st

from tilewright.analysis.trace.dma import DmaJob, DmaJobs, DmaWay


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    data=st.data(),
)
def test_every_command_has_one_job_from_its_first_packet_to_its_last(
    sizes: list[int], data: st.DataObject
) -> None:
    """Packets set out in the order of commands and come back in any order."""
    packets = [command for command, size in enumerate(sizes) for _ in range(size)]
    delays = data.draw(st.lists(st.integers(1, 50), min_size=len(packets), max_size=len(packets)))
    events = [(10 * n, 0, n) for n in range(len(packets))]
    events += [(10 * n + delay, 1, n) for n, delay in enumerate(delays)]
    jobs, found = DmaJobs(), list[DmaJob]()
    for at_ps, is_back, packet in sorted(events):
        if is_back:
            found += jobs.come_back(packet, at_ps, DmaWay.READ)
        else:
            found += jobs.set_out(3, packets[packet], packet, at_ps, is_long=False)
    found += jobs.rest()
    expected = []
    for command, size in enumerate(sizes):
        own = [n for n, each in enumerate(packets) if each == command]
        end_ps = max(10 * n + delays[n] for n in own)
        expected.append(DmaJob(3, command, DmaWay.READ, 10 * own[0], end_ps, size))
    assert sorted(found) == sorted(expected)


def test_reads_and_writes_of_an_owner_do_not_end_each_other() -> None:
    jobs = DmaJobs()
    assert not list(jobs.set_out(0, 1, 10, 0, is_long=False))
    assert not list(jobs.set_out(0, 2, 20, 5, is_long=True))
    assert not list(jobs.come_back(10, 7, DmaWay.READ))
    assert not list(jobs.set_out(0, 1, 11, 8, is_long=False))
    assert not list(jobs.come_back(11, 9, DmaWay.READ))
    assert list(jobs.rest()) == [DmaJob(0, 1, DmaWay.READ, 0, 9, 2)]


def test_a_packet_that_set_out_before_the_trace_is_no_job() -> None:
    jobs = DmaJobs()
    assert not list(jobs.come_back(10, 7, DmaWay.READ))
    assert not list(jobs.rest())


def test_what_a_command_reads_and_sends_are_two_jobs() -> None:
    jobs = DmaJobs()
    for packet, at_ps in ((10, 0), (11, 4)):
        assert not list(jobs.set_out(0, 1, packet, at_ps, is_long=False))
    assert not list(jobs.come_back(10, 7, DmaWay.READ))
    assert not list(jobs.come_back(11, 9, DmaWay.SEND))
    found = list(jobs.set_out(0, 2, 12, 20, is_long=False))
    assert found == [DmaJob(0, 1, DmaWay.READ, 0, 7, 1), DmaJob(0, 1, DmaWay.SEND, 4, 9, 1)]
