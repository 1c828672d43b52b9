"""The pager against a model that keeps every sequence whole."""

import hashlib
from array import array

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tilewright.attention.paging import ExtendPlan, Pager, PagingSpec
from tilewright.errors import InternalError, PagingError

SPEC = PagingSpec(num_pages=16, page_size=4, block_size=2)
PROMPT = st.lists(st.integers(0, 1), min_size=1, max_size=14)
MORE = st.lists(st.integers(0, 5), min_size=1, max_size=3)


def values_of(tokens: list[int]) -> list[int]:
    """Like keys and values, a number that depends on the token and on all before it."""
    return [
        int.from_bytes(hashlib.sha256(bytes(tokens[: i + 1])).digest()[:6], "big")
        for i in range(len(tokens))
    ]


class Storage:
    """One int for each token slot, filled only by carrying out plans."""

    def __init__(self, spec: PagingSpec) -> None:
        self.spec = spec
        self.slots = np.full((spec.num_blocks, spec.block_size), -1, dtype=np.int64)

    def carry_out(self, plan: ExtendPlan, values: list[int]) -> None:
        by_page = self.slots.reshape(self.spec.num_pages, self.spec.page_size)
        for page in plan.fresh_pages:
            by_page[page] = -1
        for copy in plan.copies:
            by_page[copy.target] = -1
            by_page[copy.target, : copy.num_tokens] = by_page[copy.source, : copy.num_tokens]
        self.slots[plan.blocks, plan.offsets] = values

    def read(self, pager: Pager, request: str) -> list[int]:
        table = pager.table(request)
        slots = self.slots[table.block_ids()].reshape(-1)[: table.num_tokens]
        return [int(value) for value in slots]


class PagerMachine(RuleBasedStateMachine):
    """Any order of operations leaves every request with exactly its own values."""

    @initialize(order=st.permutations(range(SPEC.num_pages)))
    def start(self, order: list[int]) -> None:
        self.pager = Pager(SPEC, order=order)
        self.storage = Storage(SPEC)
        self.model: dict[str, list[int]] = {}
        self.kept: tuple[Pager, np.ndarray, dict[str, list[int]]] | None = None
        self.count = 0

    def extend(self, request: str, tokens: list[int]) -> None:
        wanted = [*self.model[request], *tokens]
        try:
            plan = self.pager.extend(request, tokens)
        except PagingError:
            return
        self.storage.carry_out(plan, values_of(wanted)[plan.first_token :])
        self.model[request] = wanted
        self.pager.publish(request)

    @rule(tokens=PROMPT)
    def admit(self, tokens: list[int]) -> None:
        name = f"r{self.count}"
        self.count += 1
        admission = self.pager.admit(name, tokens)
        assert admission.hit_tokens < len(tokens)
        self.model[name] = tokens[: admission.hit_tokens]
        assert self.storage.read(self.pager, name) == values_of(self.model[name])
        self.extend(name, tokens[admission.hit_tokens :])

    @precondition(lambda self: self.model)
    @rule(data=st.data(), tokens=MORE)
    def append(self, data: st.DataObject, tokens: list[int]) -> None:
        self.extend(data.draw(st.sampled_from(sorted(self.model))), tokens)

    @precondition(lambda self: len(self.model) < 5)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        """Fork and write on both sides, each its own token."""
        if not self.model:
            return
        parent, name = data.draw(st.sampled_from(sorted(self.model))), f"r{self.count}"
        self.count += 1
        self.pager.fork(parent, name)
        self.model[name] = list(self.model[parent])
        self.extend(name, [6])
        self.extend(parent, [7])

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        length = data.draw(st.integers(0, len(self.model[name])))
        self.pager.truncate(name, length)
        del self.model[name][length:]

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        self.pager.release(name)
        del self.model[name]

    @rule()
    def snapshot(self) -> None:
        model = {name: list(tokens) for name, tokens in self.model.items()}
        self.kept = (self.pager.snapshot(), self.storage.slots.copy(), model)

    @precondition(lambda self: self.kept is not None)
    @rule()
    def restore(self) -> None:
        assert self.kept is not None
        snapshot, slots, model = self.kept
        self.pager.restore(snapshot)
        self.storage.slots = slots.copy()
        self.model = {name: list(tokens) for name, tokens in model.items()}

    @invariant()
    def every_request_reads_its_own_values(self) -> None:
        self.pager.check_integrity()
        assert set(self.pager.tables) == set(self.model)
        for name, tokens in self.model.items():
            assert self.pager.table(name).tokens.tolist() == tokens
            assert self.storage.read(self.pager, name) == values_of(tokens)


PagerMachine.TestCase.settings = settings(stateful_step_count=25)
test_any_order_of_operations_leaves_each_request_its_own_values = PagerMachine.TestCase


def test_a_second_request_with_the_same_prompt_takes_no_page_for_the_common_prefix() -> None:
    pager = Pager(SPEC)
    pager.admit("a", range(9))
    pager.extend("a", range(9))
    pager.publish("a")
    free = pager.num_free_pages
    admission = pager.admit("b", range(9))
    assert admission.hit_tokens == 8
    assert pager.num_free_pages == free


def test_the_last_token_is_never_taken_from_the_index() -> None:
    pager = Pager(SPEC)
    pager.admit("a", range(8))
    pager.extend("a", range(8))
    pager.publish("a")
    assert pager.admit("b", range(8)).hit_tokens == 4


def test_a_page_is_found_by_its_whole_path_and_not_by_its_own_tokens() -> None:
    pager = Pager(SPEC)
    pager.admit("a", [1, 1, 1, 1, 2, 2, 2, 2, 0])
    pager.extend("a", [1, 1, 1, 1, 2, 2, 2, 2, 0])
    pager.publish("a")
    assert pager.admit("b", [2, 2, 2, 2, 0]).hit_tokens == 0


def test_an_append_to_a_forked_partial_page_copies_only_the_tokens_that_are_there() -> None:
    pager = Pager(SPEC)
    pager.admit("a", range(6))
    pager.extend("a", range(6))
    pager.fork("a", "b")
    plan = pager.extend("b", [9])
    (copy,) = plan.copies
    assert copy.num_tokens == 2
    assert copy.source == pager.table("a").pages[-1]
    assert copy.target == pager.table("b").pages[-1]
    assert pager.extend("a", [7]).copies == ()  # the last holder writes in place


def test_room_comes_from_the_prefix_that_was_used_longest_ago() -> None:
    pager = Pager(PagingSpec(num_pages=4, page_size=2, block_size=2))
    for name, tokens in (("a", [1, 1, 0]), ("b", [2, 2, 0])):
        pager.admit(name, tokens)
        pager.extend(name, tokens)
        pager.publish(name)
    pager.release("a")
    pager.release("b")
    pager.admit("c", [1, 1, 5])  # makes a's page younger than b's
    pager.extend("c", [5, 5, 5, 5, 5])
    pager.check_integrity()
    assert pager.admit("d", [2, 2, 0]).hit_tokens == 0


def test_a_free_page_before_one_in_use_is_not_counted_as_room() -> None:
    """b has a twin of a's page and goes on after it, so a's page cannot be evicted alone."""
    pager = Pager(PagingSpec(num_pages=4, page_size=2, block_size=2))
    for name in ("a", "b"):  # both miss: neither is published yet
        pager.admit(name, [1, 1, 2])
    for name, tokens in (("a", [1, 1]), ("b", [1, 1, 2, 2])):
        pager.extend(name, tokens)
        pager.publish(name)
    pager.release("a")
    pager.extend("b", [3])
    with pytest.raises(PagingError, match="0 free pages and 0 that can be evicted"):
        pager.extend("b", [3, 3])
    pager.check_integrity()


def test_too_few_pages_are_an_error_that_changes_nothing() -> None:
    pager = Pager(PagingSpec(num_pages=2, page_size=4, block_size=4))
    pager.admit("a", range(5))
    pager.extend("a", range(5))
    with pytest.raises(PagingError, match="0 free pages and 0 that can be evicted, expected 1"):
        pager.extend("a", range(4))
    assert pager.table("a").tokens == array("q", range(5))
    pager.check_integrity()


def test_an_empty_sequence_is_refused() -> None:
    with pytest.raises(PagingError, match="found an empty sequence, expected one token or more"):
        Pager(SPEC).admit("a", [])


def test_an_unknown_request_is_named_with_those_there_are() -> None:
    pager = Pager(SPEC)
    pager.admit("a", [1])
    with pytest.raises(PagingError, match=r"request 'b': found no table, expected one of: a"):
        pager.extend("b", [1])


@pytest.mark.parametrize(("page", "block"), [(6, 4), (0, 1), (4, 0), (4, -4)])
def test_sizes_that_do_not_fit_are_refused(page: int, block: int) -> None:
    with pytest.raises(PagingError):
        PagingSpec(num_pages=2, page_size=page, block_size=block)


def test_a_lost_page_is_found_by_the_integrity_check() -> None:
    pager = Pager(SPEC)
    pager.admit("a", range(4))
    pager.extend("a", range(4))
    pager.table("a").pages[0] = 5
    with pytest.raises(InternalError, match="page 0: 1 counted, 0 found"):
        pager.check_integrity()


def test_a_snapshot_of_other_sizes_is_refused() -> None:
    other = Pager(PagingSpec(num_pages=3, page_size=4, block_size=2))
    with pytest.raises(PagingError, match="found a snapshot of"):
        Pager(SPEC).restore(other.snapshot())
