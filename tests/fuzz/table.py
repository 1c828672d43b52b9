"""The generators of ``make fuzz``. A new one is a function and an entry here."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tests.fuzz.ccl_input import run_ccl_file
from tests.fuzz.command_input import run_command_line
from tests.fuzz.engine_input import run_engine_program
from tests.fuzz.flow_input import run_flow_file
from tests.fuzz.generator import Generator
from tests.fuzz.machine_input import run_machine_file, run_topology
from tests.fuzz.model_input import run_gguf, run_safetensors
from tests.fuzz.program_input import run_program_file
from tests.fuzz.record_input import run_record

__all__ = ("GENERATORS", "build_table")


def build_table(generators: Iterable[Generator]) -> Mapping[str, Generator]:
    """Return generators by name; two of one name are refused."""
    table: dict[str, Generator] = {}
    for generator in generators:
        if generator.name in table:
            raise ValueError(f"two generators {generator.name!r}")
        table[generator.name] = generator
    return MappingProxyType(table)


GENERATORS = build_table(
    (
        Generator("engine", "engine programs, on both engines", run_engine_program, 500),
        Generator("machine", "machine files", run_machine_file, 80),
        Generator("topology", "topologies of KernBench", run_topology, 180),
        Generator("ccl", "ccl.yaml", run_ccl_file, 240),
        Generator("flow", "flow files", run_flow_file, 120),
        Generator("program", "odd kernels and host calls", run_program_file, 90),
        Generator("record", "records, states, selections", run_record, 200),
        Generator("gguf", "GGUF models", run_gguf, 250),
        Generator("safetensors", "safetensors models", run_safetensors, 250),
        Generator("command", "command lines", run_command_line, 240),
    )
)
