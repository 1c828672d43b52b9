"""KernBench programs with one mistake each, and what has to be said about it.

A line of a program that ends in ``# here`` is the one that the message names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ("WRONG", "WrongProgram")

TWO_SIPS = """\
system:
  sips: {count: 2, cubes_per_sip: 1, topology: ring_1d}
sip:
  cube_mesh: {w: 1, h: 1}
cube:
  pe_layout: {corners: [NW, NE, SW, SE], pe_per_corner: 1}
  memory_map: {hbm_total_gb_per_cube: 24, hbm_slices_per_cube: 4}
"""

HEAD = """\
import numpy as np
from kernbench.policy.placement.dp import DPPolicy

ONE = DPPolicy(num_cubes=1, num_pes=1)


def copy_kernel(x_ptr, n, tl):
    tl.store(x_ptr, tl.load(x_ptr, (n,), "f16"))


"""

BENCHES = """\
from kernbench.benches.registry import bench

bench(name="{}", description="one")(print)
bench(name="{}", description="two")(print)  # here
"""

RING = """\
defaults: {algorithm: ring}
algorithms:
  ring:
    module: kernbench.ccl.algorithms.ring_allreduce
    topology: ring_1d
    world_size: 4
"""


@dataclass(frozen=True, slots=True)
class WrongProgram:
    """A program file, files beside it, and words of the message in their order."""

    text: str
    words: tuple[str, ...]
    beside: Mapping[str, str] = field(default_factory=dict)
    topology: str | None = None  # of the machine; None is ahbm-small
    place: str = ""  # the file and line that the message names, if it is not "# here"


def in_run(*lines: str) -> str:
    """Return a program whose ``run`` has these lines."""
    return HEAD + "def run(torch):\n" + "".join(f"    {line}\n" for line in lines)


def in_kernel(*lines: str) -> str:
    """Return a program whose kernel has these lines, over a tensor of 64 f16 on one PE."""
    kernel = "def kernel(x_ptr, n, tl):\n" + "".join(f"    {line}\n" for line in lines)
    body = 'def run(torch):\n    x = torch.zeros((64,), dp=ONE, name="x")\n'
    return f'{HEAD}{kernel}\n\n{body}    torch.launch("kernel", kernel, x, 64)\n'


def in_group(*lines: str) -> str:
    """Return a program that makes a process group, then does this with a tensor of 4 rows."""
    made = ('torch.distributed.init_process_group(backend="ahbm")  # here',)
    dp = 'DPPolicy(pe="row_wise", num_cubes=1, num_pes=4)'
    return in_run(*made, f't = torch.zeros((4, 8), dp={dp}, name="t")', *lines)


NAMES = {
    "an imported name": WrongProgram(
        "from kernbench.policy.placement.dp import DPPolcy  # here\n",
        ("DPPolcy", "DPPolicy"),
    ),
    "a module": WrongProgram(
        "import kernbench.nothing  # here\n\n\ndef run(torch):\n    pass\n",
        ("'nothing'", "kernbench", "runtime_api"),
    ),
    "a module near another": WrongProgram(
        "from kernbench.runtime_api.contex import RuntimeContext  # here\n",
        ("'contex'", "kernbench.runtime_api", "'context'"),
    ),
    "a name of tl": WrongProgram(
        in_kernel('a = tl.laod(x_ptr, (n,), "f16")  # here'), ("laod", "load")
    ),
    "a name of torch": WrongProgram(
        in_run("torch.zeroz((4, 4), dp=ONE)  # here"), ("zeroz", "zeros")
    ),
    "a name that is refused": WrongProgram(
        "from kernbench.cli.main import main\n\n\ndef run(torch):\n    main()  # here\n",
        ("kernbench.cli.main.main", "tilewright run"),
    ),
    "a router": WrongProgram(
        "from kernbench.policy.routing.router import PathRouter\n\n\n"
        "def run(torch):\n    PathRouter(torch.engine)  # here\n",
        ("kernbench.policy.routing.router.PathRouter", "machine show"),
    ),
    "no entry": WrongProgram(HEAD, ("run",), place="program.py"),
    "two entries": WrongProgram(
        BENCHES.format("a-one", "b-two"), ("a-one, b-two", "program.py::a-one"), place="program.py"
    ),
    "two benches of one name": WrongProgram(
        BENCHES.format("a-one", "a-one"), ("two benches 'a-one'", "rename")
    ),
}

SIZES = {
    "a size that does not divide": WrongProgram(
        in_run(
            'x = torch.zeros((10, 4), dp=DPPolicy(cube="row_wise"), name="x")',
            'torch.launch("copy", copy_kernel, x, 10)  # here',
        ),
        ("launch 'copy'", "10", "'x'", "4 cubes", "_auto_dim_remap=False"),
    ),
    "two local sizes of one number": WrongProgram(
        in_run(
            'x = torch.zeros((8, 4), dp=DPPolicy(cube="row_wise", num_cubes=2), name="x")',
            'y = torch.zeros((8, 4), dp=DPPolicy(cube="row_wise", num_cubes=4), name="y")',
            'torch.launch("two", lambda x, y, n, tl: None, x, y, 8)  # here',
        ),
        ("launch 'two'", "8", "'x'", "4 (2 cubes)", "'y'", "2 (4 cubes)"),
    ),
    "no policy": WrongProgram(in_run("torch.zeros((4, 4))  # here"), ("dp=None", "DPPolicy")),
    "a word of a policy": WrongProgram(
        in_run('DPPolicy(cube="rowwise")  # here'), ("'rowwise'", "row_wise")
    ),
    "a dtype": WrongProgram(
        in_run('torch.zeros((4, 4), dtype="float16", dp=ONE)  # here'), ("'float16'", "f16")
    ),
    "an array of doubles": WrongProgram(
        in_run("torch.from_numpy(np.zeros(4))  # here"), ("float64", "f16")
    ),
}

ARGUMENTS = {
    "None": WrongProgram(
        in_run('torch.launch("copy", copy_kernel, torch.zeros((4,), dp=ONE), None)  # here'),
        ("launch 'copy'", "argument 1", "None", "tensors, ints and floats"),
    ),
    "a text": WrongProgram(
        in_run('torch.launch("copy", copy_kernel, torch.zeros((4,), dp=ONE), "f16")  # here'),
        ("launch 'copy'", "argument 1", "'f16'", "tensors, ints and floats"),
    ),
    "a tensor by keyword": WrongProgram(
        in_run('torch.launch("copy", copy_kernel, x_ptr=torch.zeros((4,), dp=ONE), n=4)  # here'),
        ("launch 'copy'", "x_ptr", "by keyword", "by position"),
    ),
    "a tensor of the host": WrongProgram(
        in_run(
            "x = torch.from_numpy(np.zeros(4, np.float16))",
            'torch.launch("copy", copy_kernel, x, 4)  # here',
        ),
        ("launch 'copy'", "on the host", "copy_"),
    ),
    "one too few": WrongProgram(
        in_run('torch.launch("copy", copy_kernel, torch.zeros((4,), dp=ONE))  # here'),
        ("copy", "missing", "'n'", "copy(x_ptr, n)"),
    ),
    "one too many": WrongProgram(
        in_run('torch.launch("copy", copy_kernel, torch.zeros((4,), dp=ONE), 4, 5)  # here'),
        ("copy", "too many", "copy(x_ptr, n)"),
    ),
    "a kernel without tl": WrongProgram(
        in_run('torch.launch("bare", lambda: None)  # here'), ("bare", "tl")
    ),
}

KERNELS = {
    "an address past a tensor": WrongProgram(
        in_kernel('tl.load(x_ptr + 2 * n, (n,), "f16")  # here'), ("0x", "tensor x")
    ),
    "a load that ends past a tensor": WrongProgram(
        in_kernel('tl.load(x_ptr + 64, (n,), "f16")  # here'), ("behind the end", "tensor x")
    ),
    "an address that nobody has mapped": WrongProgram(
        in_kernel('tl.load(4096, (n,), "f16")  # here'), ("0x1000",)
    ),
    "a tensor of another SIP": WrongProgram(
        HEAD
        + "def kernel(x_ptr, y_ptr, n, tl):\n"
        + '    tl.store(x_ptr, tl.load(y_ptr, (n,), "f16"))  # here\n\n\n'
        + "def run(torch):\n"
        + "    torch.ahbm.set_device(0)\n"
        + '    x = torch.zeros((64,), dp=ONE, name="x")\n'
        + "    torch.ahbm.set_device(1)\n"
        + '    y = torch.zeros((64,), dp=ONE, name="y")\n'
        + '    torch.launch("kernel", kernel, x, y, 64)\n',
        ("tensor y", "sip0.cube0.pe0", "has nothing of it"),
        topology=TWO_SIPS,
    ),
    "an axis of program_id": WrongProgram(in_kernel("tl.program_id(2)  # here"), ("2", "0", "1")),
    "operands of a dot": WrongProgram(
        in_kernel('a = tl.load(x_ptr, (4, 16), "f16")', "tl.dot(a, a)  # here"), ("fp16[4, 16]",)
    ),
    "an epilogue": WrongProgram(
        in_kernel(
            'a = tl.ref(x_ptr, (8, 8), "f16")',
            'tl.composite("gemm", a, a, x_ptr, epilogue=["rellu"])  # here',
        ),
        ("rellu", "relu"),
    ),
    "a dtype of a load": WrongProgram(
        in_kernel('tl.load(x_ptr, (n,), "half")  # here'), ("'half'", "f16")
    ),
    "an error of Python": WrongProgram(in_kernel("1 / (n - 64)  # here"), ("division by zero",)),
}

GROUPS = {
    "a backend": WrongProgram(
        in_run('torch.distributed.init_process_group(backend="nccl")  # here'),
        ("'nccl'", "ahbm"),
        beside={"ccl.yaml": RING},
    ),
    "an entry without a module": WrongProgram(
        in_group(),
        ("ring", "module"),
        beside={
            "ccl.yaml": RING.replace("    module: kernbench.ccl.algorithms.ring_allreduce\n", "")
        },
        place="ccl.yaml line 3",
    ),
    "no default algorithm": WrongProgram(
        in_group(),
        ("defaults.algorithm", "no such key", "ring", "add it"),
        beside={"ccl.yaml": RING.replace("defaults: {algorithm: ring}\n", "")},
        place="ccl.yaml",
    ),
    "a default without an entry": WrongProgram(
        in_group(),
        ("rign", "ring"),
        beside={"ccl.yaml": RING.replace("algorithm: ring}", "algorithm: rign}")},
        place="ccl.yaml line 1",
    ),
    "a module of an algorithm": WrongProgram(
        in_group("torch.distributed.all_reduce(t)"),
        ("my_allreduce",),
        beside={
            "ccl.yaml": RING.replace("kernbench.ccl.algorithms.ring_allreduce", "my_allreduce")
        },
        place="ccl.yaml line 4",
    ),
    "a key": WrongProgram(
        in_group(),
        ("slot_sise", "slot_size"),
        beside={"ccl.yaml": RING.replace("{algorithm: ring}", "{algorithm: ring, slot_sise: 64}")},
        place="ccl.yaml line 1",
    ),
    "a device": WrongProgram(in_run("torch.ahbm.set_device(7)  # here"), ("7", "0")),
    "a receive without a send": WrongProgram(
        HEAD
        + "def kernel(x_ptr, n, tl):\n"
        + '    tl.recv(dir="W", shape=(n,), dtype="f16")  # here\n\n\n'
        + "def run(torch):\n"
        + "    torch.install_ipcq()\n"
        + '    x = torch.zeros((64,), dp=DPPolicy(num_cubes=1), name="x")\n'
        + '    torch.launch("kernel", kernel, x, 64)\n',
        ("message 0 from 'W'", "break the cycle"),
        beside={"ccl.yaml": RING},
    ),
}

OWN_MACHINE = """\
from pathlib import Path

from kernbench.runtime_api.context import RuntimeContext
from kernbench.runtime_api.types import resolve_device
from kernbench.sim_engine.engine import GraphEngine
from kernbench.topology.builder import resolve_topology
from kernbench.policy.placement.dp import DPPolicy


def run(torch):
    graph = resolve_topology(str(Path(__file__).with_name("topology.yaml")))  # topology
    engine = GraphEngine(graph)
"""

MACHINES = {
    "a key of a topology without a counterpart": WrongProgram(
        OWN_MACHINE,
        ("pe_gemm.attrs.port_a_bw", "a key without a counterpart", "read_bw_gbs"),
        beside={
            "topology.yaml": TWO_SIPS
            + "  pe_template: {components: {pe_gemm: {attrs: {port_a_bw: 512}}}}\n"
        },
        place="topology.yaml line 8",
    ),
    "a misspelt key of a topology": WrongProgram(
        OWN_MACHINE,
        ("cube.pe_layout.pe_per_conrer", "pe_per_corner"),
        beside={"topology.yaml": TWO_SIPS.replace("pe_per_corner", "pe_per_conrer")},
        place="topology.yaml line 6",
    ),
    "a device of a machine": WrongProgram(
        OWN_MACHINE
        + '    device = resolve_device("sip:2")\n'
        + '    RuntimeContext(engine, device, "id", graph.spec)  # here\n',
        ("sip:2", "0 to 1"),
        beside={"topology.yaml": TWO_SIPS},
    ),
    "a context without a spec": WrongProgram(
        OWN_MACHINE
        + '    ctx = RuntimeContext(engine, resolve_device("all"), "id")\n'
        + "    ctx.zeros((4,), dp=DPPolicy())  # here\n",
        ("spec", "graph.spec"),
        beside={"topology.yaml": TWO_SIPS},
    ),
}

WRONG: Mapping[str, WrongProgram] = {
    **NAMES,
    **SIZES,
    **{f"argument: {name}": wrong for name, wrong in ARGUMENTS.items()},
    **{f"kernel: {name}": wrong for name, wrong in KERNELS.items()},
    **{f"group: {name}": wrong for name, wrong in GROUPS.items()},
    **MACHINES,
}
