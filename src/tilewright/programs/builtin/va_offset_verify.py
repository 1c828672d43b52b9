"""Virtual addresses: programs read and write at offsets from one base, near and far."""

from typing import Annotated, Any

import numpy as np

from tilewright import language as tl
from tilewright.host import RuntimeContext
from tilewright.programs.bound import Path, Work, bound_of
from tilewright.programs.contract import BenchOutcome, BenchProgram, row_error
from tilewright.programs.inputs import Array, Cubes, Pes, Sips, deploy, reserve, team_of
from tilewright.programs.parameter import ProgramFit, fit_team

NUMBER_BYTES = 4
LENGTH = 64  # numbers of one access
PAGES = 2  # of each PE, so that an access can cross from one to the next


def offset_kernel(
    x_ptr: Any, out_ptr: Any, part: int, shift: int, offsets: tuple[int, ...], length: int
) -> None:
    """Program p adds p + 1 to ``length`` numbers at each offset in part p + shift of the tensor."""
    program = tl.program_id(0)
    base = (program + shift) % tl.num_programs(0) * part
    for offset in offsets:
        places = base + offset + tl.arange(0, length)
        tl.store(out_ptr + places, tl.load(x_ptr + places) + (program + 1))


def _run(
    torch: RuntimeContext,
    shift: Annotated[int, "program p works on the part of PE p + shift"] = 1,
    sips: Sips = 1,
    cubes: Cubes = 1,
    pes: Pes = 0,
) -> BenchOutcome:
    team = team_of(torch, sips=sips, cubes=cubes, pes=pes)
    page = torch.machine.spec.pe.mmu.page_bytes // NUMBER_BYTES
    part = PAGES * page
    offsets = (0, LENGTH + 5, page - LENGTH // 2, part - LENGTH)
    numbers = np.arange(team.num_pes * part, dtype=np.int32).reshape(team.num_pes, part)
    x = deploy(torch, "x", numbers, team.split(0))
    out = reserve(torch, "out", numbers.shape, "i32", team.split(0))
    report = torch.launch(
        offset_kernel, x, out, part, shift % team.num_pes, offsets, LENGTH,
        grid=(team.num_pes,), on=x,
    ).report  # fmt: skip
    homes = x.placement.homes
    owners = {pe: homes[(number + shift) % len(homes)] for number, pe in enumerate(homes)}
    num_bytes = team.num_pes * len(offsets) * LENGTH * NUMBER_BYTES
    work = Work(
        num_pes=team.num_pes,
        read_bytes=num_bytes,
        written_bytes=num_bytes,
        elements={"add": num_bytes // NUMBER_BYTES},
    )
    path = Path(pes=report.pes, read_from=owners, write_to=owners)
    return BenchOutcome(
        bound=bound_of(torch.machine, work, path),
        launches=(report,),
        max_error=row_error(out.numpy(timed=False), _expected(numbers, shift, offsets)),
        tolerance=0.0,
    )


def _expected(numbers: Array, shift: int, offsets: tuple[int, ...]) -> Array:
    """Return what each program leaves where it worked, and zeros elsewhere."""
    result = np.zeros_like(numbers)
    for program in range(len(numbers)):
        home = (program + shift) % len(numbers)
        for offset in offsets:
            window = slice(offset, offset + LENGTH)
            result[home, window] = numbers[home, window] + program + 1
    return result


PROGRAMS = (
    BenchProgram(
        "va_offset_verify",
        "reads and writes at virtual base + offset, in own pages and others'",
        _run,
        fit=ProgramFit(counts=fit_team),
    ),
)
