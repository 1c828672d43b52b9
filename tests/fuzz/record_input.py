"""Records, states and selections with random changes, given to the commands that read them."""

import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.fuzz.command import run_command
from tests.fuzz.generator import Random
from tests.fuzz.mutation import mutated_bytes, mutated_json

__all__ = ("run_record",)

SMALL = ("--machine", "ahbm-small", "--json")
COMPARED = (
    "attention", "compare", "--source", "synthetic", "--context", "64", "--steps", "1",
    "--cases", "1", "--flows", "quest", "--budgets", "4", "--json",
)  # fmt: skip
SELECTED = (
    "attention", "run", "--backend", "machine", "--batch", "1", "--context", "128", "--phases", "1",
    "--kv-heads", "1", "--head-dim", "16", *SMALL,
)  # fmt: skip


@cache
def base_records() -> dict[str, tuple[Any, ...]]:
    """Return valid documents of each kind, made once by commands."""
    folder = Path(mkdtemp(prefix="tilewright-fuzz-base-"))
    try:
        runs = [
            run_command("run", "gemm_single_pe", "--once", *SMALL).output,
            run_command("run", "softmax", "--param", "rows=64", "--phases", "2", *SMALL).output,
            run_command("run", "allreduce_ring", "--phases", "1", *SMALL).output,
        ]
        run_command(*COMPARED, "--state", str(folder / "state.json"))
        run_command(*SELECTED, "--save-selection", str(folder / "selection.json"))
        files = [(folder / name).read_text() for name in ("state.json", "selection.json")]
        state, selection = map(json.loads, files)
    finally:
        shutil.rmtree(folder)
    return {"run": tuple(map(json.loads, runs)), "state": (state,), "selection": (selection,)}


def run_record(rng: Random, folder: Path) -> None:
    """Change a document and give it to a command that reads its kind."""
    del folder
    records = base_records()
    kind = rng.choice(("run", "run", "run", "run", "state", "selection"))
    other = kind if rng.random() < 0.95 else rng.choice(sorted(records))
    _write(rng, "record.json", rng.choice(records[other]))
    json_ = rng.choice(((), ("--json",)))
    match kind:
        case "state":
            run_command(*COMPARED, "--state", "record.json")
        case "selection":
            run_command(*SELECTED, "--no-data", "--selection", "record.json")
        case _:
            _look_at_run(rng, json_)


def _look_at_run(rng: Random, json_: tuple[str, ...]) -> None:
    choice = rng.random()
    if choice < 0.5:
        run_command("explain", "record.json", *json_)
    elif choice < 0.6:
        run_command("explain", "record.json", "--measure", "--seconds", "0", "--no-code", *json_)
    else:
        _write(rng, "second.json", rng.choice(base_records()["run"]), is_changed=choice < 0.8)
        run_command("compare", "record.json", "second.json", *json_)


def _write(rng: Random, name: str, document: Any, *, is_changed: bool = True) -> None:
    changed = mutated_json(rng, document) if is_changed else document
    content = json.dumps(changed).encode("utf-8", "surrogatepass")
    if is_changed and rng.random() < 0.15:
        content = mutated_bytes(rng, content)
    Path(name).write_bytes(content)
