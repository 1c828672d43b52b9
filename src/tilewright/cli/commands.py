"""The table of commands: what a list of them says, and where each is loaded from."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any

from tilewright.errors import UsageError


@dataclass(frozen=True, slots=True)
class Command:
    """A function of a module of this package; its summary is the first line of its help."""

    summary: str
    module: str
    function: str


@dataclass(frozen=True, slots=True)
class Group:
    """Commands under one name."""

    summary: str
    commands: Mapping[str, Command]


COMMANDS: Mapping[str, Command | Group] = MappingProxyType(
    {
        "demo": Command(
            "Show what sparse attention keeps, and how much faster it is.", "demo", "demo"
        ),
        "probe": Command(
            "Measure a machine's latency and bandwidth beside lower bounds.", "probe", "probe"
        ),
        "validate": Command(
            "Check the simulator against results that are known without it.", "validate", "validate"
        ),
        "run": Command(
            "Run a program on a simulated machine: values, time, and why.", "run", "run"
        ),
        "list": Command("List the ready programs, or the parameters of one.", "list_", "list_"),
        "explain": Command(
            "Say why a run took its time, and what would shorten it.", "explain", "explain"
        ),
        "compare": Command("Say what differs between two runs.", "compare", "compare"),
        "generate": Command(
            "Write a text with a language model whose attention is sparse.", "generate", "generate"
        ),
        "machine": Group(
            "Look at machines: what they are, and what is wrong with a file.",
            {
                "list": Command("List the machines that ship.", "machine_list", "list_"),
                "check": Command(
                    "Say what is wrong with a machine file, or doubtful.", "machine", "check"
                ),
                "show": Command(
                    "Show what a machine is: its parts, their figures, its totals.",
                    "machine",
                    "show",
                ),
                "import": Command(
                    "Turn a topology of KernBench into a machine file.",
                    "machine_import",
                    "import_topology",
                ),
            },
        ),
        "attention": Group(
            "Sparse attention: check flows, show what they mean, run them.",
            {
                "list": Command("List the ready flows.", "attention_list", "list_"),
                "check": Command(
                    "Say what is wrong with the flows of a file, or doubtful.", "attention", "check"
                ),
                "show": Command(
                    "Show what a flow means: fields, state and both programs.", "attention", "show"
                ),
                "compile": Command(
                    "Print the kernels of a flow: plain Triton, one file.",
                    "attention_compile",
                    "compile_",
                ),
                "run": Command(
                    "Run a flow beside dense attention, for quality or for time.",
                    "attention_run",
                    "run",
                ),
                "compare": Command(
                    "Compare flows: what each keeps of dense attention, and costs.",
                    "attention_compare",
                    "compare",
                ),
            },
        ),
        "bench": Group(
            "Measure the simulator itself, as ratios to peers in one run.",
            {
                "engine": Command(
                    "Time both event engines beside SimPy, and prove them equal.",
                    "engine_bench",
                    "engine",
                ),
                "language": Command(
                    "Time five kernels here and in Triton's interpreter.",
                    "language_bench",
                    "language",
                ),
                "collectives": Command(
                    "Hold simulated all-reduces against bounds and alpha-beta.",
                    "collectives_bench",
                    "collectives",
                ),
                "attention": Command(
                    "Time Quest's reference beside dense attention in torch.",
                    "attention_bench",
                    "attention",
                ),
                "decode": Command(
                    "Hold Quest against dense attention on a machine.", "decode_bench", "decode"
                ),
            },
        ),
    }
)


def load(module: str, attribute: str) -> Any:
    """Return what a module of this package has under a name, or None; the module is loaded now."""
    try:
        loaded = import_module(f"tilewright.cli.{module}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("tilewright.bench"):
            raise
        found, expected = "an installed wheel, which has no benchmarks", "a checkout of the project"
        fix = "clone it, run `make bench-env` there, then .venv/bin/tilewright bench"
        raise UsageError("tilewright bench", found, expected, fix) from error
    return getattr(loaded, attribute, None)
