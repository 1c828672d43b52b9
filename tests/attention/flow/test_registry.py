from typing import Any

import pytest

from tilewright.attention.flow import register, vFlow
from tilewright.attention.flow.registry import _REGISTRY, collect_flows, get, has, list_keys
from tilewright.errors import RegistryError


class Empty(vFlow):
    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        del q, o, cache, ctx


def test_a_registered_flow_is_found_by_its_name() -> None:
    with collect_flows() as flows:
        assert register("empty")(Empty) is Empty
        assert get("empty") is Empty
        assert has("empty")
        assert "empty" in list_keys()
    assert flows == {"empty": Empty}


def test_a_second_owner_of_a_name_is_refused() -> None:
    with collect_flows():
        register("empty")(Empty)
        with pytest.raises(RegistryError, match="expected one owner for a name"):
            register("empty")(Empty)


def test_a_file_can_use_flows_that_were_registered_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(_REGISTRY, "before", Empty)
    with collect_flows() as flows:
        assert get("before") is Empty
        assert has("before")
    assert flows == {}


def test_an_unknown_name_is_refused_with_the_nearest_and_all_that_are_known() -> None:
    with collect_flows():
        register("empty")(Empty)
        with pytest.raises(RegistryError, match=r"expected one of .*empty.*did you mean 'empty'"):
            get("emtpy")


@pytest.mark.parametrize("thing", [int, 3, vFlow.forward_cache])
def test_only_flow_classes_can_be_registered(thing: Any) -> None:
    with collect_flows(), pytest.raises(RegistryError, match="derived from vFlow or vFlowMLA"):
        register("thing")(thing)


def test_names_collected_apart_do_not_meet() -> None:
    with collect_flows():
        register("empty")(Empty)
    with collect_flows():
        register("empty")(Empty)
    assert "empty" not in _REGISTRY
