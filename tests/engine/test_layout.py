from collections.abc import Callable
from typing import Any

import pytest

from tilewright.engine import Engine, ServerSpec
from tilewright.engine.spec import MAX_FLIT_PS
from tilewright.errors import EngineError
from tilewright.limits import MAX_FLIT_BYTES
from tilewright.units import PS_PER_US


def with_three(engine: Engine) -> Engine:
    """Two links and a unit without a rate."""
    for name in ("west", "east"):
        engine.add_server(ServerSpec(name, bytes_per_us=64_000))
    engine.add_server(ServerSpec("unit"))
    engine.add_signal("go")
    return engine


WRONG: dict[str, tuple[Callable[[Engine], object], str]] = {
    "a zero rate": (
        lambda engine: engine.add_server(ServerSpec("link", bytes_per_us=0)),
        (
            "server 'link': found bytes_per_us = 0, expected an int in 1..9223372036854775807; "
            "correct bytes_per_us"
        ),
    ),
    "a negative rate": (
        lambda engine: engine.add_server(ServerSpec("link", bytes_per_us=-5)),
        (
            "server 'link': found bytes_per_us = -5, expected an int in 1..9223372036854775807; "
            "correct bytes_per_us"
        ),
    ),
    "a buffer smaller than a packet": (
        lambda engine: engine.add_server(ServerSpec("link", bytes_per_us=1, buffer_flits=15)),
        (
            "server 'link': found buffer_flits = 15, expected at least 16, the flits of a packet; "
            "enlarge the buffer or make packets smaller"
        ),
    ),
    "a latency beyond int64": (
        lambda engine: engine.add_server(ServerSpec("link", latency_ps=2**63)),
        (
            "server 'link': found latency_ps = 9223372036854775808, "
            "expected an int in 0..9223372036854775807; correct latency_ps"
        ),
    ),
    "a second server of one name": (
        lambda engine: engine.add_server(ServerSpec("west")),
        "server 'west': found a second one, expected one owner of the name; rename one",
    ),
    "a second signal of one name": (
        lambda engine: engine.add_signal("go"),
        "signal 'go': found a second one, expected one owner of the name; rename one",
    ),
    "a signal without a name": (
        lambda engine: engine.add_signal(""),
        "signal: found the name '', expected a text that is not empty; give it a name",
    ),
    "a misspelt server": (
        lambda engine: engine.add_route(["west", "eest"]),
        (
            "route 0: found an unknown server 'eest', expected a server of this engine; "
            "did you mean 'west' or 'east'?"
        ),
    ),
    "an unknown number": (
        lambda engine: engine.add_route([3]),
        "route 0: found an unknown server 3, expected a server of this engine; add it first",
    ),
    "a negative number": (
        lambda engine: engine.add_route([-1]),
        "route 0: found an unknown server -1, expected a server of this engine; add it first",
    ),
    "a bool for a server": (
        lambda engine: engine.add_route([True]),
        "route 0: found an unknown server True, expected a server of this engine; add it first",
    ),
    "an empty route": (
        lambda engine: engine.add_route([]),
        "route 0: found [], expected a list of at least one server; list the servers in order",
    ),
    "a name in place of a list": (
        lambda engine: engine.add_route("west"),
        "route 0: found 'west', expected a list of at least one server; list the servers in order",
    ),
    "a number in place of a list": (
        lambda engine: engine.add_route(5),  # type: ignore[arg-type]
        "route 0: found 5, expected a list of at least one server; list the servers in order",
    ),
    "no channels": (
        lambda engine: engine.add_route(["west"], None),  # type: ignore[arg-type]
        (
            "route 0: found channels = None, expected an int, or a list of one for each server; "
            "list the channels"
        ),
    ),
    "no specification": (
        lambda engine: engine.add_server(None),  # type: ignore[arg-type]
        "server: found None, expected a ServerSpec; describe it by a ServerSpec",
    ),
    "a text for reassemble": (
        lambda engine: engine.add_server(ServerSpec("link", reassemble="yes")),  # type: ignore[arg-type]
        "server 'link': found reassemble = 'yes', expected a bool; pass True or False",
    ),
    "a number for reassemble": (
        lambda engine: engine.add_server(ServerSpec("link", reassemble=1)),  # type: ignore[arg-type]
        "server 'link': found reassemble = 1, expected a bool; pass True or False",
    ),
    "None for reassemble": (
        lambda engine: engine.add_server(ServerSpec("link", reassemble=None)),  # type: ignore[arg-type]
        "server 'link': found reassemble = None, expected a bool; pass True or False",
    ),
    "too few channels": (
        lambda engine: engine.add_route(["west", "east"], [1]),
        "route 0: found 1 channels for 2 servers, expected one for each server; add or remove some",
    ),
    "a channel beyond the last": (
        lambda engine: engine.add_route(["west"], 1024),
        "route 0: found channel = 1024, expected an int in 0..1023; correct channel",
    ),
    "a server without a rate on a way": (
        lambda engine: engine.add_route(["west", "unit"]),
        (
            "route 0: found server 'unit' without a rate on a route of 2 servers, expected servers "
            "that packets can cross; give it bytes_per_us or a service, or a route of its own"
        ),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_built_is_refused_in_the_same_words(engine: Engine, case: str) -> None:
    attempt, message = WRONG[case]
    with pytest.raises(EngineError) as caught:
        attempt(with_three(engine))
    assert str(caught.value) == message


@pytest.mark.parametrize("case", WRONG)
def test_a_refusal_leaves_nothing_behind(engine: Engine, case: str) -> None:
    with_three(engine)
    with pytest.raises(EngineError):
        WRONG[case][0](engine)
    assert engine.add_server(ServerSpec("link", bytes_per_us=1)) == 3
    assert engine.add_route(["west", 1, "link"], [0, 1, 1023]) == 0
    assert engine.add_signal("stop") == 1


def test_a_service_lets_packets_cross_a_server_without_a_rate(engine: Engine) -> None:
    class Slow:
        def service(self, packet: Any, now_ps: int) -> tuple[int, int]:  # noqa: ARG002
            return 1, 0

    with_three(engine).add_server(ServerSpec("python", service=Slow()))
    assert engine.add_route(["west", "python", "east"]) == 0


def test_the_slowest_rate_of_the_largest_flit_is_within_bounds() -> None:
    assert MAX_FLIT_BYTES * PS_PER_US <= MAX_FLIT_PS  # a flit is at most that many bytes
