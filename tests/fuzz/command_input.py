"""Command lines: quick ones that are valid, with words left out, repeated, added and replaced."""

from functools import cache
from pathlib import Path

from tests.fuzz.command import run_command
from tests.fuzz.generator import Random
from tests.fuzz.machine_input import field_lines
from tests.fuzz.model_input import write_tiny_gguf
from tests.fuzz.mutation import odd_number
from tilewright.cli.app import build_command
from tilewright.cli.shell import named_command

__all__ = ("run_command_line",)

HELP = ("--help", "--help")  # an option that takes a value may take the first
ON_SMALL = ("--machine", "ahbm-small")
BASES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("run", "gemm_single_pe", "--seed", "1"), ("--once", *ON_SMALL)),
    (("run", "softmax", "--param", "rows=16"), ("--once", *ON_SMALL)),
    (("run", "allreduce_ring", "--record", "r.json"), ("--once", *ON_SMALL)),
    (("run", "matmul", "--param", "m=32"), ("--once", *ON_SMALL)),
    (
        ("run", "stream", "--sweep", "n=64,128"),
        ("--once", "--jobs", "1", "--machine", "ahbm-small"),
    ),
    (("run", "program.py", "--trace", "t"), ("--once", *ON_SMALL)),
    (("list", "matmul"), ()),
    (("explain", "r.json"), ()),
    (("compare", "r.json", "s.json"), ()),
    (("machine", "show", "ahbm-small", "--svg", "m.svg"), ()),
    (("machine", "check", "ahbm-small", "--set", "cube.pes=2"), ()),
    (("machine", "import", "t.yaml", "-o", "m.yaml"), ()),
    (
        ("probe", "--bytes", "256"),
        ("--case", "pe_local", "--phases", "1", "--machine", "ahbm-small"),
    ),
    (("attention", "check", "flow.py"), ()),
    (("attention", "show", "quest", "--optimized"), ()),
    (("attention", "compile", "quest", "--emit", "machine"), ()),
    (("attention", "run", "--flow", "quest"), ("--context", "64", "--steps", "1")),
    (
        ("attention", "run", "--flow", "quest", "--batch", "1"),
        ("--backend", "machine", "--context", "64", "--phases", "1", "--machine", "ahbm-small"),
    ),
    (
        ("attention", "compare", "--flows", "quest", "--budgets", "4", "--state", "s.json"),
        ("--source", "synthetic", "--context", "64", "--steps", "1", "--cases", "1"),
    ),
    (("generate", "--prompt", "the", "--budget", "2"), ("--model", "m.gguf", "--max-tokens", "1")),
    (("demo",), HELP),
    (("validate",), HELP),
    (("bench", "decode"), HELP),
    ((), ()),
)
"""Words that may change, and words that stay, so that a line that is still valid is quick."""

VALUES = (
    "", " ", "-", "--", "---", "0", "1", "2", "3", "-1", "16", "1.5", "1e309", "nan", "inf",
    "9" * 40, "4KiB", "1 GB/s", "a\0b", "\0", "\udc80", "é", "\U0001f4a5", "\u202e", "n" * 300,
    "n/" * 2100, ".", "..", "/", "./", "/dev/null", "/dev/full", "/dev/zero", "none/x.json",
    "r.json", "program.py", "flow.py", "m.svg", "m.gguf", "x=y", "=", "a=", "=b", "a=b=c",
    "[bold]", "%s", "{}", "'", "quest", "dense", "ahbm", "ahbm-small", "all", "sip:0", "sip:9",
    "f16", "f99", "head", "cube", "uniform", "--help", "--json", "--no-code", "--version",
)  # fmt: skip
PARAMETERS = ("rows", "columns", "m", "n", "k", "pes", "cubes", "sips", "dtype", "bytes", "tile_m")


@cache
def options() -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the options of each command, by its words."""
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    root = build_command()
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        words = waiting.pop()
        _, command = named_command(root, words)
        found[words] = tuple(
            name
            for each in command.params
            for name in each.opts
            if name.startswith("-") and not name.endswith("-completion")  # writes at home
        )
        waiting += [(*words, name) for name in getattr(command, "commands", {})]
    return found


def run_command_line(rng: Random, folder: Path) -> None:
    """Change a command line and run it; the files that it names are there, or not."""
    del folder
    changing, staying = rng.choice(BASES)
    line = list(changing)
    num_words = 2 if line[:1] in (["machine"], ["attention"], ["bench"]) else 1
    known = options().get(tuple(line[:num_words]), ())
    for _ in range(rng.randint(1, 3)):
        _mutate(rng, line, known)
    _write_files(rng)
    run_command(*line, *staying)


def _mutate(rng: Random, line: list[str], known: tuple[str, ...]) -> None:
    place = rng.randrange(len(line) + 1)
    match rng.randrange(7):
        case 0:
            del line[place : place + 1]
        case 1:
            line[place:place] = line[place : place + 1]
        case 2 if line:
            line[place % len(line)] = _value(rng)
        case 3:
            line.insert(place, rng.choice(VALUES))
        case 4:
            rng.shuffle(line)
        case _ if known:
            line += [rng.choice(known), _value(rng)] if rng.random() < 0.8 else [rng.choice(known)]


def _value(rng: Random) -> str:
    choice = rng.random()
    if choice < 0.25:
        path, value = rng.choice(field_lines())
        return f"{path}={_changed(rng, value)}"
    if choice < 0.35:
        value = rng.choice((*VALUES[:16], "64", "f32", "1125899906842624"))
        return f"{rng.choice(PARAMETERS)}={value}"
    return rng.choice(VALUES)


def _changed(rng: Random, value: str) -> str:
    digits, _, unit = value.partition(" ")
    if digits.isdecimal():
        return f"{odd_number(rng, int(digits))} {unit}".strip()
    return rng.choice(VALUES[:20])


def _write_files(rng: Random) -> None:
    if rng.random() < 0.8:
        Path("program.py").write_text("def run(torch):\n    torch.zeros((64,), 'f16')\n")
        Path("flow.py").write_text("x = 1\n")
    if rng.random() < 0.8:
        write_tiny_gguf(Path("m.gguf"))
