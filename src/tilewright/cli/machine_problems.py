"""Every mistake of a file in one error, as the commands of ``machine`` report them."""

from tilewright.machine.file.explain import MachineFileError


def all_problems(source: str, error: MachineFileError) -> MachineFileError:
    """Return an error that lists all mistakes of a file; a single one stays as it is."""
    problems = error.problems
    if len(problems) < 2:
        return error
    found = "\n".join([f"{len(problems)} mistakes:", *map(str, problems)])
    return MachineFileError(source, found, "none", "correct them, and check again", problems)
