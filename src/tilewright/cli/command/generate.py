"""``tilewright generate``: text from a real model under a flow."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.table import Table

from tilewright.attention.planner import StateAdvance
from tilewright.cli.command.attention.option import (
    DTypeOption,
    MachinesOption,
    PlacementOption,
    StateAdvanceOption,
    latency_spec,
)
from tilewright.cli.option import (
    NameOption,
    PageSizeOption,
    SetOption,
    ThreadsOption,
    complete_flow,
)
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.output import note, printable
from tilewright.errors import UsageError
from tilewright.models import load_model
from tilewright.records import read_text_file
from tilewright.records.generate import GenerateRecord, SimulatedAttention
from tilewright.studies.generate.text import DEFAULT_BUDGET, DENSE, GenerateSpec
from tilewright.studies.generate.text import generate as run_generate
from tilewright.units import format_ps

PromptOption = Annotated[str | None, typer.Option(metavar="TEXT", help="What the text continues.")]
PromptFileOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A file with the prompt, in UTF-8.")
]
ModelOption = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE|FOLDER",
        help="smollm2, a .gguf file, or a folder with config.json and safetensors.",
    ),
]
FlowOption = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE",
        autocompletion=complete_flow,
        help="A ready flow, a flow file, or dense.",
    ),
]
BudgetOption = Annotated[
    int | None,
    typer.Option(
        min=1, help=f"Pages that a row may read, reserved ones included: {DEFAULT_BUDGET}."
    ),
]
DenseLayersOption = Annotated[
    int | None, typer.Option(min=0, help="The first so many layers read every page: 0.")
]
MaxTokensOption = Annotated[int, typer.Option(min=1, help="Tokens to write at most.")]
TemperatureOption = Annotated[
    float, typer.Option(min=0.0, help="0: the likeliest token; above: tokens are drawn.")
]
SeedOption = Annotated[
    int | None, typer.Option(min=0, help="Seed of what is drawn, with --temperature: 0.")
]


def generate(
    prompt: PromptOption = None,
    prompt_file: PromptFileOption = None,
    model: ModelOption = "smollm2",
    flow: FlowOption = "quest",
    name: NameOption = None,
    budget: BudgetOption = None,
    page_size: PageSizeOption = 16,
    dense_layers: DenseLayersOption = None,
    state_advance: StateAdvanceOption = StateAdvance.VORTEX,
    max_tokens: MaxTokensOption = 64,
    temperature: TemperatureOption = 0.0,
    seed: SeedOption = None,
    threads: ThreadsOption = 1,
    machine: MachinesOption = None,
    set_: SetOption = None,
    placement: PlacementOption = None,
    dtype: DTypeOption = None,
    json: JsonOption = False,
) -> Outcome:
    """Write a text with a language model whose attention is sparse.

    The prompt is read by dense attention; every token behind it reads the pages that the flow
    selects, in each layer. Afterwards: tokens a second of this process, and pages read against
    dense attention.

    With --machine also the time that attention would take there for a token: all layers, as layers
    times one layer's simulated step, which reads the pages that the layer in the middle read; a
    mean over the first and the last step of the run. Weights and projections are not in it.

    tilewright generate --prompt "The capital of France is" --flow quest --budget 16

    tilewright generate --prompt-file story.txt --flow dense --max-tokens 100

    tilewright generate --prompt-file story.txt --flow quest --machine ahbm
    """
    if flow == DENSE:
        _check_dense({"--budget": budget, "--dense-layers": dense_layers, "--name": name})
    if seed is not None and temperature == 0:
        found, fix = f"--seed {seed} at --temperature 0", "raise --temperature, or drop --seed"
        raise UsageError("command line", found, "tokens that are drawn", fix)
    spec = GenerateSpec(
        prompt=_prompt(prompt, prompt_file),
        flow=flow,
        flow_name=name,
        budget=DEFAULT_BUDGET if budget is None else budget,
        page_size=page_size,
        dense_layers=dense_layers or 0,
        state_advance=state_advance,
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed or 0,
        threads=threads,
        latency=latency_spec(machine, set_, placement, dtype),
    )
    note(f"loading {model}")
    record = run_generate(load_model(model), spec, write=(lambda _: None) if json else _show)
    if not json:
        print(flush=True)
    return Outcome(record, _view(record))


def _prompt(prompt: str | None, file: Path | None) -> str:
    if (prompt is None) == (file is None):
        found = "neither --prompt nor --prompt-file" if file is None else "both of them"
        fix = "run: tilewright generate --help"
        raise UsageError("command line", found, "--prompt or --prompt-file", fix)
    if prompt is not None:
        return prompt
    return read_text_file(Path(str(file)), "a prompt", UsageError)


def _check_dense(given: Mapping[str, object]) -> None:
    """Refuse options of a flow that selects pages."""
    for option, value in given.items():
        if value is not None:
            found = f"{option} {value} with --flow dense"
            fix = f"dense reads every page: drop {option}"
            raise UsageError("command line", found, "one of them", fix)


def _show(letters: str) -> None:
    """Print letters as they come; what a terminal would obey is shown instead."""
    print(printable(letters, kept="\n\t"), end="", flush=True)


def _view(record: GenerateRecord) -> RenderableType:
    pages, rows, counts = record.pages, record.rows, record.num_bytes
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(rows.dense.items()))
    read = counts.kv_read + counts.summary_read + counts.state_read
    ending = "ended by the model" if record.ended else "cut at --max-tokens"
    table = Table(title=f"{record.model.name} under {record.flow}", show_header=False)
    for label, text in (
        ("tokens", f"{record.prompt_tokens} of the prompt, {len(record.tokens)} written, {ending}"),
        ("prompt", f"{record.prompt_seconds:.2f} s"),
        ("decoding", f"{record.tokens_per_second:.2f} tokens/s, {record.steps} steps"),
        ("pages read", f"{pages.read} of {pages.in_rows}{_share(pages.read, pages.in_rows)}"),
        ("rows", f"{rows.sparse} sparse" + (f"; dense: {reasons}" if reasons else "")),
        ("bytes read, of what dense reads", _ratio(read, counts.dense_kv_read)),
        *(_simulated(one) for one in record.simulated),
    ):
        table.add_row(label, text)
    return table


def _simulated(found: SimulatedAttention) -> tuple[str, str]:
    label = f"attention on {found.machine.name}"
    lengths = " and ".join(str(one.tokens) for one in found.lengths)
    of = f"{found.layers} layers x one layer's step, simulated at {lengths} tokens"
    if found.machine.refresh_ps:
        refresh = format_ps(found.machine.refresh_ps)
        of += f" and one refresh phase: a step may have a refresh of {refresh} more or less"
    if found.latency_ps is None:
        return label, f"not simulated: {found.missing}"
    text = f"{format_ps(found.latency_ps)} a token ({of})"
    if found.dense_latency_ps is None:
        return label, f"{text}; dense: {found.missing}"
    beside = speed_beside(found.latency_ps, found.dense_latency_ps)
    return label, f"{text}; dense {format_ps(found.dense_latency_ps)}: {beside}"


def speed_beside(latency_ps: int, dense_ps: int) -> str:
    """What a flow gains over dense attention, or loses.

    >>> speed_beside(100, 160), speed_beside(200, 110)
    ('1.60 times as fast as dense', 'takes 1.82 times as long as dense')
    """
    if latency_ps == dense_ps:
        return "as fast as dense"
    if latency_ps < dense_ps:
        return f"{dense_ps / latency_ps:.2f} times as fast as dense"
    return f"takes {latency_ps / dense_ps:.2f} times as long as dense"


def _share(part: int, whole: int) -> str:
    return f" ({part / whole:.1%} of dense)" if whole else ""


def _ratio(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "none were read"
