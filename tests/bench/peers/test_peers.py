import sys

import pytest

from tilewright.bench.peers import load_peer
from tilewright.errors import MissingExtraError


def test_a_peer_is_loaded_by_its_name() -> None:
    assert load_peer("simpy_message").__name__ == "tilewright.bench.peers.simpy_message"


def test_a_peer_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simpy", None)
    for module in ("simpy_credit", "simpy_event", "simpy_message"):
        monkeypatch.delitem(sys.modules, f"tilewright.bench.peers.{module}", raising=False)
    with pytest.raises(MissingExtraError, match=r"simpy_message: found no library 'simpy'.*bench"):
        load_peer("simpy_message")


def test_an_unknown_peer_is_no_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError, match="simpy_unheard_of"):
        load_peer("simpy_unheard_of")
