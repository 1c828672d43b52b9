"""``tilewright attention compare``: quality of flows, beside their bytes and their time."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tilewright.attention.planner import Reserved, StateAdvance
from tilewright.cli.command.attention.option import (
    DTypeOption,
    MachinesOption,
    PlacementOption,
    StateAdvanceOption,
    latency_spec,
)
from tilewright.cli.option import PageSizeOption, SetOption, ThreadsOption
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.progress import progress_bar
from tilewright.errors import UsageError
from tilewright.evaluation import SOURCES, SourceKind, SourceSpec
from tilewright.records import check_targets
from tilewright.report.plot import check_plot_path
from tilewright.report.quality.plot import write_quality_plot
from tilewright.report.quality.table import quality_view
from tilewright.studies.compare.flows import CompareSpec, compare_flows

DEFAULT_FLOWS = "quest,block_sparse_attention,streaming_llm,oracle,random"
DEFAULT_BUDGETS = "8,16,32"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """What the command line says; None: the usual of the source, or not given."""

    flows: Annotated[
        str, typer.Option(metavar="NAME|FILE,...", help="Ready flows, or flow files with one flow.")
    ] = DEFAULT_FLOWS
    budgets: Annotated[
        str,
        typer.Option(metavar="N,...", help="Pages that a row may read, reserved ones included."),
    ] = DEFAULT_BUDGETS
    source: Annotated[SourceKind, typer.Option(help="What flows are compared on.")] = (
        SourceKind.SMOLLM2
    )
    context: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens before the decoded ones: 2048; of recall 256."),
    ] = None
    steps: Annotated[int | None, typer.Option(min=1, help="Decoded tokens of a case: 16.")] = None
    cases: Annotated[
        int | None,
        typer.Option(min=1, help="Sequences: smollm2 1, needle and synthetic 2, recall 8."),
    ] = None
    page_size: PageSizeOption = 16
    dense_layers: Annotated[
        int, typer.Option(min=0, help="The first so many layers read every page.")
    ] = 0
    state_advance: StateAdvanceOption = StateAdvance.VORTEX
    seed: Annotated[int, typer.Option(min=0, help="Of cases.")] = 0
    threads: ThreadsOption = 1
    machine: MachinesOption = None
    set_: SetOption = None
    placement: PlacementOption = None
    batch: Annotated[int | None, typer.Option(min=1, help="Requests of the simulated step: 1.")] = (
        None
    )
    dtype: DTypeOption = None
    state: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Keep complete trials here, and go on.")
    ] = None
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.svg|.html",
            help="Draw quality into this file: over bytes, or over time on each machine.",
        ),
    ] = None
    json: JsonOption = False


def compare(options: CompareOptions) -> Outcome:
    """Compare flows: what each keeps of dense attention, and costs.

    A context is taken in by dense attention, before anything is asked; then tokens
    are decoded, and every flow chooses pages for the same queries.

    \b
      mass     share of the dense softmax on the pages that were read
      worst    the same of the query head that gets least, mean over tokens
      best     mass against that of the best pages, as many in every KV head
      error    |sparse - dense| / |dense| of a head's output
      stable   share of pages that stay from token to token (Jaccard index)
      bytes    read in a step, summaries and state included, against dense
      KL       of next-token probabilities, with all layers under the flow
      NLL      of right answers; ppl: perplexity less that of dense attention
      hits     needles: answers that are right in every token
      time     simulated, with --machine; faster: dense attention's against it

    With --machine, one decode step's attention of one layer is simulated on it: the
    first token behind the context, with the model's heads, for --batch requests, from
    the host's launch to its knowing of the end. It carries no values: each row reads
    the pages that the flow selected there in the comparison (first case, layers spread
    over the requests), or pages drawn at random where every layer is dense. Dense
    layers, weights and projections are not in it. There is a row for each machine. What
    a machine cannot run has no time, and the reason stands below the table.

    Sources: smollm2, plain text; needle, a fact inside a text, asked for at the
    end; recall, pairs and keys by a small trained model; synthetic, random keys
    with planted needles. The text is that of Python's help().

    Examples:

    \b
      tilewright attention compare --source recall --budgets 4,8
      tilewright attention compare --flows quest,mine.py --state mine.json
      tilewright attention compare --source needle --cases 8 --budgets 16
      tilewright attention compare --budgets 8,16,32,64 --plot front.html
      tilewright attention compare --machine ahbm --machine mine.yaml --plot two.svg

    MLA flows are compared on --source synthetic. Complete trials and simulated times are
    kept in the file --state, or next to the plot: FILE.state.json.
    A second run continues from there, with more flows or budgets, too.

    Exit status: 0 it is complete, 2 wrong input, 130 interrupted; then the rows that
    were complete are shown.
    """
    spec = _spec(options)
    with progress_bar(is_wanted=not options.json) as tell:
        record = compare_flows(spec, tell=tell)
    if options.plot is not None:
        write_quality_plot(options.plot, record)
    return Outcome(record, quality_view(record))


def _spec(options: CompareOptions) -> CompareSpec:
    state = _checked_state(options.state, options.plot)
    usual = SOURCES[options.source]
    return CompareSpec(
        flows=tuple(_words(options.flows, "--flows")),
        budgets=_budgets(options.budgets),
        source=options.source,
        sizes=SourceSpec(
            context=options.context or usual.context,
            steps=options.steps or usual.steps,
            cases=options.cases or usual.cases,
            seed=options.seed,
            page_size=options.page_size,
            reserved=Reserved(),
            state_advance=options.state_advance,
        ),
        dense_layers=options.dense_layers,
        threads=options.threads,
        state=state,
        latency=latency_spec(
            options.machine, options.set_, options.placement, options.dtype, options.batch
        ),
    )


def _checked_state(state: Path | None, plot: Path | None) -> Path | None:
    """Refuse, before any work is done, files that cannot be written."""
    if plot is not None:
        check_plot_path(plot, (".svg", ".html"))
    if state is None and plot is not None:
        state = plot.with_name(f"{plot.name}.state.json")
    check_targets({"plot": plot, "state": state})
    return state


def _words(text: str, option: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise UsageError(option, repr(text), "names with commas between them", "fill the gap")
    return words


def _budgets(text: str) -> tuple[int, ...]:
    words = _words(text, "--budgets")
    for word in words:
        if not (word.isascii() and word.isdigit() and int(word) > 0):
            raise UsageError("--budgets", repr(word), "a number of pages above 0", "correct it")
    found = tuple(map(int, words))
    if len(set(found)) < len(found):
        raise UsageError("--budgets", "a budget twice", "each once", "leave one out")
    return found
