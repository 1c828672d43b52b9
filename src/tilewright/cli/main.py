"""The entry point of the ``tilewright`` command."""

import sys  # and nothing else: an import up here is a moment in which Ctrl-C shows a traceback

__all__ = ("main",)

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run a command line, by default that of the process, and return the exit status."""
    try:
        # libraries take half a second to load, and Ctrl-C must end that quietly too
        from tilewright.cli.app import run  # noqa: PLC0415

        status = int(run(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("interrupted; nothing half-done is left\n")
        status = INTERRUPTED
    if status == INTERRUPTED:
        # CPython ends a process by SIGINT if Ctrl-C came while it ran the text of an exec, as
        # dataclasses do, whatever the exit status; running another text makes it forget
        exec("")
    return status
