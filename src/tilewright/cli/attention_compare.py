"""``tilewright attention compare``: quality of flows, beside their bytes and their time."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tilewright.attention.planner import Reserved, StateAdvance
from tilewright.cli.arguments import SetOption
from tilewright.cli.latency_options import (
    DTypeOption,
    MachinesOption,
    PlacementOption,
    latency_spec,
)
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.output import note
from tilewright.cli.state_option import StateAdvanceOption
from tilewright.errors import UsageError
from tilewright.evaluation import SOURCES, SourceKind, SourceSpec
from tilewright.records import check_targets
from tilewright.report.plot import check_plot_path
from tilewright.report.quality.plot import write_quality_plot
from tilewright.report.quality.table import quality_view
from tilewright.studies.compare.flows import CompareSpec, Tell, compare_flows

DEFAULT_FLOWS = "quest,block_sparse_attention,streaming_llm,oracle,random"
DEFAULT_BUDGETS = "8,16,32"
HELP = """Compare flows: what each keeps of dense attention, and costs.

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
were complete are shown."""

FlowsOption = Annotated[
    str, typer.Option(metavar="NAME|FILE,...", help="Ready flows, or flow files with one flow.")
]
BudgetsOption = Annotated[
    str, typer.Option(metavar="N,...", help="Pages that a row may read, reserved ones included.")
]
SourceOption = Annotated[SourceKind, typer.Option(help="What flows are compared on.")]
ContextOption = Annotated[
    int | None,
    typer.Option(min=1, help="Tokens before the decoded ones: 2048; of recall 256."),
]
StepsOption = Annotated[int | None, typer.Option(min=1, help="Decoded tokens of a case: 16.")]
CasesOption = Annotated[
    int | None,
    typer.Option(min=1, help="Sequences: smollm2 1, needle and synthetic 2, recall 8."),
]
PageSizeOption = Annotated[int, typer.Option(min=1, help="Tokens of a page.")]
DenseLayersOption = Annotated[
    int, typer.Option(min=0, help="The first so many layers read every page.")
]
StateOption = Annotated[
    Path | None, typer.Option(metavar="FILE.json", help="Keep complete trials here, and go on.")
]
PlotOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.svg|.html",
        help="Draw quality into this file: over bytes, or over time on each machine.",
    ),
]
ThreadsOption = Annotated[
    int,
    typer.Option(min=1, help="Threads of matrix products; another number may round otherwise."),
]

BatchOption = Annotated[int | None, typer.Option(min=1, help="Requests of the simulated step: 1.")]


def compare(
    flows: FlowsOption = DEFAULT_FLOWS,
    budgets: BudgetsOption = DEFAULT_BUDGETS,
    source: SourceOption = SourceKind.SMOLLM2,
    context: ContextOption = None,
    steps: StepsOption = None,
    cases: CasesOption = None,
    page_size: PageSizeOption = 16,
    dense_layers: DenseLayersOption = 0,
    state_advance: StateAdvanceOption = StateAdvance.VORTEX,
    seed: Annotated[int, typer.Option(min=0, help="Of cases.")] = 0,
    threads: ThreadsOption = 1,
    machine: MachinesOption = None,
    set_: SetOption = None,
    placement: PlacementOption = None,
    batch: BatchOption = None,
    dtype: DTypeOption = None,
    state: StateOption = None,
    plot: PlotOption = None,
    json_: JsonOption = False,
) -> Outcome:
    state = _checked_state(state, plot)
    usual = SOURCES[source]
    spec = CompareSpec(
        flows=tuple(_words(flows, "--flows")),
        budgets=_budgets(budgets),
        source=source,
        sizes=SourceSpec(
            context=usual.context if context is None else context,
            steps=usual.steps if steps is None else steps,
            cases=usual.cases if cases is None else cases,
            seed=seed,
            page_size=page_size,
            reserved=Reserved(),
            state_advance=state_advance,
        ),
        dense_layers=dense_layers,
        threads=threads,
        state=state,
        latency=latency_spec(machine, set_, placement=placement, dtype=dtype, batch=batch),
    )
    with _progress(is_wanted=not json_) as tell:
        record = compare_flows(spec, tell=tell)
    if plot is not None:
        write_quality_plot(plot, record)
    is_interrupted = record.status == "interrupted"
    return Outcome(
        record, quality_view(record), passed=not is_interrupted, is_interrupted=is_interrupted
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


@contextmanager
def _progress(*, is_wanted: bool) -> Iterator[Tell]:
    """A bar where standard error is a terminal and somebody reads it; elsewhere a few lines."""
    if is_wanted and sys.stderr is not None and sys.stderr.isatty():
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("loading", total=None)
            yield lambda done, total, what: bar.update(
                task, completed=done, total=total, description=what
            )
        return
    yield lambda done, total, what: note(f"{done} of {total}: {what}") if what else None
