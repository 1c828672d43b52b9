"""One step of a session: new tokens of some requests, layer by layer."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tilewright.attention.backends.reference.attend import attend_causal
from tilewright.attention.backends.reference.completion import complete_pages, store_states
from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.page_list import PageLists, every_page
from tilewright.attention.backends.reference.row import (
    RowPlan,
    RowResult,
    attend_row,
    score_row,
    select_row,
)
from tilewright.attention.backends.reference.shared import RequestProgress, Shared
from tilewright.attention.backends.reference.step_arrays import (
    StepOutput,
    checked_array,
    checked_inputs,
    checked_query,
    gather_rows,
)
from tilewright.attention.backends.reference.store import (
    prompt_mass_name,
    selection_name,
)
from tilewright.attention.backends.reference.view import RowView
from tilewright.attention.graph import FlowKind
from tilewright.attention.ops.feedback import prompt_windows, wants_mass
from tilewright.attention.paging import ExtendPlan
from tilewright.attention.planner import (
    RowFacts,
    StepPlan,
    plan_step,
    rows_read_whole,
    state_pages,
)
from tilewright.errors import AttentionError

Found = TypeVar("Found")


class Step:
    """Tokens that a batch of requests takes in together; sequences may differ in every length.

    For each layer ``write`` the keys and values of every request, then ``attend``. ``finish`` makes
    complete pages findable for other requests. Several tokens of one request in a decode step
    (drafts to verify) are the same as one step for each of them.
    """

    def __init__(self, shared: Shared, plans: Mapping[str, ExtendPlan], *, prompt: bool) -> None:
        self._shared = shared
        self._plans = dict(plans)
        self._prompt = prompt
        self._want_mass = wants_mass(shared.graph)
        self._blocks = {
            request: shared.namespace.xp.asarray(shared.pager.table(request).block_ids())
            for request in plans
        }
        self._written: set[tuple[str, int]] = set()
        shared.open_steps.update(dict.fromkeys(plans, self))

    def write(self, layer: int, request: str, keys: Any, values: Any = None) -> None:
        """Keys [tokens, heads, key_dim] and values of the new tokens; under MLA latents alone.

        Pages that are complete now get their summaries.
        """
        shared, plan = self._shared, self._plan(request)
        geometry = shared.graph.geometry
        given = {"latent": keys} if geometry.kind is FlowKind.MLA else {"k": keys, "v": values}
        if (values is None) != (geometry.kind is FlowKind.MLA):
            raise AttentionError(
                f"request {request!r}",
                f"values {type(values).__name__}",
                "latents alone under MLA, keys and values otherwise",
                "pass what the flow's kind has",
            )
        for name, tokens in given.items():
            shape = (plan.num_tokens, shared.num_kv_heads, geometry.reserved_fields[name][1])
            array = checked_array(shared, f"request {request!r} {name}", tokens, shape)
            shared.store.write_tokens(layer, name, plan, array)
        token_bytes = shared.store.block_bytes(given, is_staged=True) // geometry.page_size
        shared.counters.num_bytes.kv_written += plan.num_tokens * token_bytes * shared.num_kv_heads
        complete_pages(shared, layer, plan, self._blocks[request])
        self._written.add((request, layer))

    def attend(
        self,
        layer: int,
        inputs: Mapping[str, Any],
        residual: Mapping[str, tuple[Any, Any]] | None = None,
    ) -> dict[str, StepOutput]:
        """Sparse attention of the new tokens of every request in ``inputs``.

        An input is a query [tokens, heads, query heads, key_dim], or a mapping of all inputs that
        the flow declares. A residual is attention over tokens that are not in the pages, as output
        and log-sum-exp; it is merged into the result.
        """
        given = {request: self._inputs(request, found) for request, found in inputs.items()}
        results: dict[str, list[RowResult]] = {request: [] for request in given}
        longest = max((self._plan(request).num_tokens for request in given), default=0)
        for token in range(longest):
            now = [name for name in given if token < self._plan(name).num_tokens]
            plan = self._plan_rows(layer, token, now)
            for index, request in enumerate(now):
                row = self._attend_row(layer, token, request, given[request], plan, index)
                results[request].append(row)
        return {
            request: gather_rows(self._shared.namespace, rows, (residual or {}).get(request))
            for request, rows in results.items()
        }

    def select(self, layer: int, inputs: Mapping[str, Any]) -> dict[str, PageLists]:
        """The pages that `attend` would read for the first new token of each request."""
        return self._of_first_tokens(layer, inputs, select_row)

    def scores(self, layer: int, inputs: Mapping[str, Any]) -> dict[str, Array | None]:
        """What pages are ranked by for the first new token of each request, if one score does it.

        [heads, pages, 1, query heads or 1].
        """
        return self._of_first_tokens(layer, inputs, score_row)

    def _of_first_tokens(
        self,
        layer: int,
        inputs: Mapping[str, Any],
        find: Callable[[RowView, dict[str, Array], RowPlan], Found],
    ) -> dict[str, Found]:
        given = {request: self._inputs(request, found) for request, found in inputs.items()}
        plan = self._plan_rows(layer, 0, list(given))
        found = {}
        for index, request in enumerate(given):
            row = self._row_plan(layer, 0, request, plan, index)
            view = self._view(layer, request, self._plan(request).first_token + 1)
            found[request] = find(view, _at(given[request], 0), row)
        return found

    def attend_dense(self, layer: int, request: str, queries: Any) -> StepOutput:
        """Causal attention of a piece of prompt over everything before it."""
        shared, plan = self._shared, self._plan(request)
        query = checked_query(shared, request, queries, plan.num_tokens)
        view = self._view(layer, request, plan.first_token + plan.num_tokens)
        with shared.namespace.quiet():
            output, lse, _ = attend_causal(
                view.prompt_reader, query, plan.first_token, shared.scale
            )
        pages = every_page(shared.namespace.xp, shared.num_kv_heads, view.num_pages)
        return StepOutput(output, lse, (pages,) * plan.num_tokens)

    def observe(self, layer: int, request: str, queries: Any) -> None:
        """Hand over the queries of the last prompt tokens, for flows that look at their masses.

        Called in the step that completes the prompt; it may bring more queries than the step has
        tokens, up to the largest window of the flow.
        """
        shared, plan = self._shared, self._plan(request)
        num_tokens = plan.first_token + plan.num_tokens
        view = self._view(layer, request, num_tokens)
        kept = {}
        for window in prompt_windows(shared.graph):
            wanted = min(window, num_tokens)
            if len(queries) < wanted:
                raise AttentionError(
                    f"request {request!r}",
                    f"{len(queries)} queries of the prompt",
                    f"the last {wanted}",
                    "observe the last queries when the prompt is complete",
                )
            query = checked_query(shared, request, queries[len(queries) - wanted :], wanted)
            with shared.namespace.quiet():
                _, _, mass = attend_causal(
                    view.prompt_reader, query, num_tokens - wanted, shared.scale, want_mass=True
                )
            kept[prompt_mass_name(window)] = None if mass is None else mass[:, :, None, :]
        shared.state.write(request, layer, kept)

    def finish(self) -> None:
        """End the step. Every layer must have been written for every request."""
        shared = self._shared
        for request in self._plans:
            plan = self._plan(request)
            missing = [
                layer
                for layer in range(shared.spec.num_layers)
                if (request, layer) not in self._written
            ]
            if missing and plan.num_tokens:
                raise AttentionError(
                    f"request {request!r}",
                    f"no keys of layers {missing}",
                    "all layers",
                    "write them",
                )
        for request, plan in self._plans.items():
            store_states(shared, plan, self._blocks[request])
            shared.pager.publish(request)
            self._advance(request, plan)
            shared.wake(request)
            del shared.open_steps[request]

    def cancel(self) -> None:
        """Take back the step: its tokens, and what they changed in the requests' state."""
        for request in self._plans:
            plan = self._plan(request)
            self._shared.rewind(request, plan.first_token)
            self._shared.pager.truncate(request, plan.first_token)
            del self._shared.open_steps[request]

    def _advance(self, request: str, plan: ExtendPlan) -> None:
        progress = self._shared.progress[request]
        stop = plan.first_token + plan.num_tokens
        if self._prompt:
            now = RequestProgress(progress.steps, stop)
        else:
            now = RequestProgress(progress.steps + plan.num_tokens, progress.first_decode)
        self._shared.progress[request] = now

    def _plan_rows(self, layer: int, token: int, requests: list[str]) -> StepPlan:
        shared = self._shared
        size = shared.graph.geometry.page_size
        facts = []
        for request in requests:
            num_tokens = self._plan(request).first_token + token + 1
            step = shared.progress[request].steps + token
            facts += [
                RowFacts(-(-num_tokens // size), num_tokens, layer, head, step)
                for head in range(shared.num_kv_heads)
            ]
        return plan_step(shared.spec.plan, facts, saves_state=shared.graph.has_saves)

    def _attend_row(
        self,
        layer: int,
        token: int,
        request: str,
        inputs: Mapping[str, Array],
        plan: StepPlan,
        index: int,
    ) -> RowResult:
        shared = self._shared
        if (request, layer) not in self._written:
            raise AttentionError(
                f"request {request!r}", f"no keys of layer {layer}", "keys first", "write them"
            )
        num_tokens = self._plan(request).first_token + token + 1
        row = self._row_plan(layer, token, request, plan, index)
        shared.remember(request, layer, num_tokens - 1)
        result = attend_row(self._view(layer, request, num_tokens), _at(inputs, token), row)
        if result.kept:
            shared.state.write(request, layer, result.kept)
        return result

    def _row_plan(
        self, layer: int, token: int, request: str, plan: StepPlan, index: int
    ) -> RowPlan:
        """The part of a plan that is about one request."""
        shared = self._shared
        heads = shared.num_kv_heads
        rows = slice(index * heads, (index + 1) * heads)
        step = shared.progress[request].steps + token
        interval = shared.spec.update_interval
        kept = shared.state.layer(request, layer)
        return RowPlan(
            paths=plan.paths[rows],
            budgets=plan.budgets[rows],
            reads_whole=rows_read_whole(plan, shared.graph)[rows],
            state_pages=tuple(state_pages(plan, shared.graph)[rows].tolist()),
            reserved=plan.reserved,
            step=step,
            scale=shared.scale,
            want_mass=self._want_mass,
            reuse=step % interval != 0 and selection_name(0) in kept,
            keep_selections=interval > 1,
        )

    def _inputs(self, request: str, found: Any) -> dict[str, Array]:
        return checked_inputs(self._shared, request, found, self._plan(request).num_tokens)

    def _view(self, layer: int, request: str, num_tokens: int) -> RowView:
        return RowView(self._shared, request, layer, self._blocks[request], num_tokens)

    def _plan(self, request: str) -> ExtendPlan:
        if request not in self._plans:
            known = ", ".join(sorted(self._plans)) or "none"
            found = "no tokens in this step"
            raise AttentionError(f"request {request!r}", found, f"one of: {known}", "begin with it")
        if self._shared.open_steps.get(request) is not self:
            raise AttentionError(
                f"request {request!r}", "a step that has ended", "an open one", "begin another"
            )
        return self._plans[request]


def _at(inputs: Mapping[str, Array], token: int) -> dict[str, Array]:
    """Inputs of one token: [heads, 1, r, c]."""
    return {name: values[token][:, None] for name, values in inputs.items()}
