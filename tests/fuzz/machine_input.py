"""Machine files and topologies of KernBench with random changes, checked, shown and run on."""

import json
from functools import cache
from pathlib import Path

from tests.fuzz.command import run_command
from tests.fuzz.generator import Random
from tests.fuzz.mutation import mutated_bytes, mutated_yaml
from tilewright.machine.file.write import machine_file_text
from tilewright.machine.parse import parse_machine
from tilewright.machine.presets import list_presets, preset_text

__all__ = ("FILE", "field_lines", "run_machine_file", "run_topology", "write_machine_file")

FILE = "machine.yaml"
SMALL = "ahbm-small"
MOST_PES = 64  # of a machine that programs run on: larger ones take longer, and show no more
PROGRAMS = ("gemm_single_pe", "allreduce_ring", "pointer_chase", "stream", "softmax", "allgather")
CASES = ("pe_local", "pe_next_cube", "pe_other_sip", "hot_2", "host_write_far", "host_read_near")


@cache
def base_texts() -> tuple[str, ...]:
    """Presets as they are, and with every value."""
    names = list_presets()
    texts = [machine_file_text(parse_machine(name)) for name in names]
    small = machine_file_text(parse_machine(SMALL))
    return (*map(preset_text, names), *texts, *[small] * (4 * len(texts)))


@cache
def field_lines() -> tuple[tuple[str, str], ...]:
    """Return path and value of each field of a machine."""
    found: list[tuple[str, str]] = []
    above: list[str] = []  # keys of the sections around a line
    for line in base_texts()[-1].splitlines():
        text = line.partition("#")[0].rstrip()
        if not text:
            continue
        depth = (len(text) - len(text.lstrip())) // 2
        key, _, value = text.strip().partition(":")
        above[depth:] = [key]
        if value.strip():
            found.append((".".join(above), value.strip()))
    return tuple(found)


def write_machine_file(rng: Random) -> None:
    """Write a machine file with random changes into the working directory."""
    text = mutated_yaml(rng, rng.choice(base_texts()))
    content = text.encode("utf-8", "replace")
    Path(FILE).write_bytes(mutated_bytes(rng, content) if rng.random() < 0.1 else content)


def run_machine_file(rng: Random, folder: Path) -> None:
    """Check a machine file; show a valid one, or run something on it."""
    del folder
    write_machine_file(rng)
    found = run_command("machine", "check", FILE, "--json")
    if found.status:
        return
    num_pes = json.loads(found.output)["num_pes"]
    match rng.randrange(6) if num_pes <= MOST_PES else rng.randrange(2):
        case 0:
            run_command("machine", "show", FILE, *rng.choice(((), ("--json",), ("--yaml",))))
        case 1:
            run_command("machine", "show", FILE, "--svg", "machine.svg", "--json")
        case 2 | 3:
            case, size = rng.choice(CASES), rng.choice(("1", "4096"))
            sizes = ("--case", case, "--bytes", size, "--phases", "1")
            run_command("probe", *sizes, "--machine", FILE, "--json")
        case _:
            data = rng.choice(((), ("--no-data",)))
            run_command("run", rng.choice(PROGRAMS), "--once", *data, "--machine", FILE, "--json")


TOPOLOGY = (Path(__file__).parents[1] / "interop/kernbench/topology/default.yaml").resolve()


def run_topology(rng: Random, folder: Path) -> None:
    """Turn a topology with random changes into a machine file."""
    del folder
    content = mutated_yaml(rng, TOPOLOGY.read_text("utf-8")).encode("utf-8", "replace")
    if rng.random() < 0.2:
        content = mutated_bytes(rng, content)
    file = rng.choice(("topology.yaml", "topology.yaml", "topology.json"))
    Path(file).write_bytes(content)
    options = rng.choice(((), ("--json",), ("-o", "imported.yaml")))
    found = run_command("machine", "import", file, *options)
    if not found.status and Path("imported.yaml").exists():
        run_command("machine", "check", "imported.yaml")
