"""One step of a session: new tokens of some requests, layer by layer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.attention.backends.reference.attend import Partial, attend_causal, merge_partials
from tilewright.attention.backends.reference.completion import complete_pages, store_states
from tilewright.attention.backends.reference.namespace import Array, Namespace
from tilewright.attention.backends.reference.pages import PageLists, every_page
from tilewright.attention.backends.reference.row import Row, RowResult
from tilewright.attention.backends.reference.shared import RequestProgress, Shared, request_error
from tilewright.attention.backends.reference.store import prompt_mass_name, selection_name
from tilewright.attention.backends.reference.view import RowView
from tilewright.attention.graph import FlowKind
from tilewright.attention.ops.leaf import prompt_windows, wants_mass
from tilewright.attention.paging import ExtendPlan
from tilewright.attention.planner import RowFacts, plan_step, rows_read_whole, state_pages
from tilewright.errors import AttentionError


@dataclass(frozen=True, slots=True)
class StepOutput:
    """What attention gave one request: [tokens, heads, query heads, value_dim] and [.., heads]."""

    output: Array
    log_sum_exp: Array | None  # None: several softmaxes were added
    lists: tuple[PageLists, ...]  # pages read, by token

    def pages(self, token: int, head: int) -> npt.NDArray[np.int64]:
        """Logical pages that a token read in a KV head, ascending."""
        found = self.lists[token]
        return np.asarray(found.pages[head, : found.counts[head]])


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
            found, fix = f"values {type(values).__name__}", "pass what the flow's kind has"
            expected = "latents alone under MLA, keys and values otherwise"
            raise request_error(request, found, expected, fix)
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
        given = self._checked(inputs)
        results: dict[str, list[RowResult]] = {request: [] for request in given}
        longest = max((self._plan(request).num_tokens for request in given), default=0)
        for token in range(longest):
            now = {name: given[name] for name in given if token < self._plan(name).num_tokens}
            for request, row in self._rows(layer, token, now).items():
                if (request, layer) not in self._written:
                    found = f"no keys of layer {layer}"
                    raise request_error(request, found, "keys first", "write them")
                self._shared.remember(request, layer, row.view.num_tokens - 1)
                result = row.attend()
                if result.kept:
                    self._shared.kept.write(request, layer, result.kept)
                results[request].append(result)
        return {
            request: gather_rows(self._shared.namespace, rows, (residual or {}).get(request))
            for request, rows in results.items()
        }

    def select(self, layer: int, inputs: Mapping[str, Any]) -> dict[str, PageLists]:
        """The pages that `attend` would read for the first new token of each request."""
        rows = self._rows(layer, 0, self._checked(inputs))
        return {request: row.select() for request, row in rows.items()}

    def scores(self, layer: int, inputs: Mapping[str, Any]) -> dict[str, Array | None]:
        """What pages are ranked by for the first new token of each request, if one score does it.

        [heads, pages, 1, query heads or 1].
        """
        rows = self._rows(layer, 0, self._checked(inputs))
        return {request: row.scores() for request, row in rows.items()}

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
                found = f"{len(queries)} queries of the prompt"
                fix = "observe the last queries when the prompt is complete"
                raise request_error(request, found, f"the last {wanted}", fix)
            query = checked_query(shared, request, queries[len(queries) - wanted :], wanted)
            with shared.namespace.quiet():
                _, _, mass = attend_causal(
                    view.prompt_reader, query, num_tokens - wanted, shared.scale, want_mass=True
                )
            kept[prompt_mass_name(window)] = None if mass is None else mass[:, :, None, :]
        shared.kept.write(request, layer, kept)

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
                raise request_error(
                    request, f"no keys of layers {missing}", "all layers", "write them"
                )
        for request, plan in self._plans.items():
            store_states(shared, plan, self._blocks[request])
            shared.pager.publish(request)
            now, stop = shared.progress[request], plan.first_token + plan.num_tokens
            shared.progress[request] = (
                RequestProgress(now.steps, stop)
                if self._prompt
                else RequestProgress(now.steps + plan.num_tokens, now.first_decode)
            )
            shared.wake(request)
            del shared.open_steps[request]

    def cancel(self) -> None:
        """Take back the step: its tokens, and what they changed in the requests' state."""
        for request in self._plans:
            plan = self._plan(request)
            self._shared.take_back(request, plan.first_token)
            del self._shared.open_steps[request]

    def _rows(
        self, layer: int, token: int, given: Mapping[str, Mapping[str, Array]]
    ) -> dict[str, Row]:
        """Plan one token of all these requests; return the row of each."""
        shared, heads = self._shared, self._shared.num_kv_heads
        size, interval = shared.graph.geometry.page_size, shared.spec.update_interval
        counts = {name: self._plan(name).first_token + token + 1 for name in given}
        steps = {name: shared.progress[name].steps + token for name in given}
        facts = [
            RowFacts(-(-counts[name] // size), counts[name], layer, head, steps[name])
            for name in given
            for head in range(heads)
        ]
        plan = plan_step(shared.spec.plan, facts, saves_state=shared.graph.has_saves)
        reads_whole = rows_read_whole(plan, shared.graph)
        pages = state_pages(plan, shared.graph).tolist()
        found = {}
        for index, (request, inputs) in enumerate(given.items()):
            rows = slice(index * heads, (index + 1) * heads)
            kept = shared.kept.layer(request, layer)
            found[request] = Row(
                view=self._view(layer, request, counts[request]),
                inputs={name: values[token][:, None] for name, values in inputs.items()},
                paths=plan.paths[rows],
                budgets=plan.budgets[rows],
                reads_whole=reads_whole[rows],
                state_pages=tuple(pages[rows]),
                reserved=plan.reserved,
                step=steps[request],
                want_mass=self._want_mass,
                reuse=steps[request] % interval != 0 and selection_name(0) in kept,
            )
        return found

    def _checked(self, inputs: Mapping[str, Any]) -> dict[str, dict[str, Array]]:
        return {
            request: checked_inputs(self._shared, request, found, self._plan(request).num_tokens)
            for request, found in inputs.items()
        }

    def _view(self, layer: int, request: str, num_tokens: int) -> RowView:
        return RowView(self._shared, request, layer, self._blocks[request], num_tokens)

    def _plan(self, request: str) -> ExtendPlan:
        if request not in self._plans:
            known = ", ".join(sorted(self._plans)) or "none"
            found = "no tokens in this step"
            raise request_error(request, found, f"one of: {known}", "begin with it")
        if self._shared.open_steps.get(request) is not self:
            raise request_error(request, "a step that has ended", "an open one", "begin another")
        return self._plans[request]


def checked_array(shared: Shared, where: str, values: Any, shape: tuple[int, ...]) -> Array:
    array = shared.namespace.array(values)
    if tuple(array.shape) != shape:
        raise AttentionError(where, f"shape {tuple(array.shape)}", f"{shape}", "reshape it")
    return array


def checked_inputs(shared: Shared, request: str, found: Any, num_tokens: int) -> dict[str, Array]:
    """Every input that the flow declares: [tokens, heads, r, c]. An array alone is the query."""
    given = found if isinstance(found, Mapping) else {"q": found}
    declared = dict(shared.graph.inputs)
    if set(given) != set(declared):
        found_text = f"inputs {sorted(given)}"
        raise request_error(request, found_text, f"{sorted(declared)}", "pass these")
    inputs = {}
    for name, value_type in declared.items():
        shape = (num_tokens, shared.num_kv_heads, *value_type.shape)
        array = checked_array(shared, f"request {request!r} {name}", given[name], shape)
        inputs[name] = shared.namespace.rounded(array, value_type.dtype)
    return inputs


def checked_query(shared: Shared, request: str, queries: Any, num_tokens: int) -> Array:
    """Queries of prompt tokens: [tokens, heads, query heads, key_dim]."""
    geometry = shared.graph.geometry
    shape = (num_tokens, shared.num_kv_heads, geometry.query_heads, geometry.key_dim)
    array = checked_array(shared, f"request {request!r} q", queries, shape)
    return shared.namespace.rounded(array, geometry.query_dtype)


def gather_rows(
    namespace: Namespace, rows: list[RowResult], residual: tuple[Any, Any] | None
) -> StepOutput:
    """The tokens of one request together, merged with attention over tokens kept elsewhere."""
    xp = namespace.xp
    output = xp.stack([row.output for row in rows], axis=0)
    sums = [row.log_sum_exp for row in rows]
    lse = None if any(found is None for found in sums) else xp.stack(sums, axis=0)
    lists = tuple(row.read for row in rows)
    if residual is None:
        return StepOutput(output, lse, lists)
    if lse is None:
        raise AttentionError(
            "residual", "an output of several softmaxes", "one softmax", "merge it outside"
        )
    with namespace.quiet():
        other, other_lse = (namespace.array(part) for part in residual)
        merged = merge_partials(
            xp, Partial.from_output(output, lse, xp), Partial.from_output(other, other_lse, xp)
        )
        return StepOutput(merged.output(xp), merged.log_sum_exp(xp), lists)
