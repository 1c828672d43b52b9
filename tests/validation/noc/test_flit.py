from tilewright.validation.noc.flit import run_flits
from tilewright.validation.workload import LinkSpec, Message, NetworkLoad


def test_the_start_of_every_hop_is_kept() -> None:
    links = LinkSpec("slow", flit_ps=2, latency_ps=20), LinkSpec("fast", flit_ps=1, latency_ps=3)
    messages = (
        Message(0, 0, links=(0, 1), channels=(0, 0), flits=4),
        Message(1, 23, links=(1,), channels=(0,), flits=1),
    )
    run = run_flits(NetworkLoad(links, messages))
    assert run.starts_ps == {(0, 0): 0, (0, 1): 22, (1, 0): 29}
    assert run.delivered_ps == {0: 32, 1: 33}
    assert run.undelivered == ()


def test_a_deadlock_names_the_messages_that_never_arrive() -> None:
    link = LinkSpec("ring", flit_ps=1, latency_ps=1, buffer_flits=4)
    messages = tuple(
        Message(index, 0, (index, (index + 1) % 3, (index + 2) % 3), (0, 0, 0), flits=4)
        for index in range(3)
    )
    run = run_flits(NetworkLoad((link,) * 3, messages))
    assert run.undelivered == (0, 1, 2)
    assert run.delivered_ps == {}
