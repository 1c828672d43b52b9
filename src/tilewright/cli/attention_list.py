"""``tilewright attention list``: the ready flows."""

from rich.text import Text

from tilewright.attention import flows
from tilewright.attention.flow.registry import get, list_keys
from tilewright.attention.flows.ready import flow_summary
from tilewright.attention.graph import FlowKind
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.records.attention_check import AttentionListRecord, ReadyFlow

TITLES = {FlowKind.GQA: "Grouped-query attention", FlowKind.MLA: "Latent attention (MLA)"}


def summaries() -> list[tuple[str, str]]:
    """Return the names of ready flows, each with its rule."""
    return [(row.name, row.summary) for row in _flows()]


def list_(_json: JsonOption = False) -> Outcome:
    """List the ready flows.

    By family, a line for each: its name and its rule. docs/flows.md says what they keep of a page,
    and from which papers they are; tilewright attention show NAME shows one.
    """
    record = AttentionListRecord(flows=_flows())
    return Outcome(record, _view(record))


def _flows() -> tuple[ReadyFlow, ...]:
    ready = [name for name in list_keys() if get(name).__module__.startswith(flows.__name__)]
    return tuple(
        ReadyFlow(name=name, family=kind.value, summary=flow_summary(get(name)))
        for kind in TITLES
        for name in ready
        if get(name).kind is kind
    )


def _view(record: AttentionListRecord) -> Text:
    view = Text()
    width = max(len(row.name) for row in record.flows)
    for kind, title in TITLES.items():
        view.append(f"{title}\n", style="dim")
        for row in record.flows:
            if row.family == kind.value:
                view.append(f"  {row.name:<{width}}", style="bold")
                view.append(f"  {row.summary}\n")
        view.append("\n")
    return view.append("one of them: tilewright attention show NAME", style="dim")
