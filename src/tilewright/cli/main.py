"""The entry point of the ``tilewright`` command."""

import sys  # and nothing else: an import up here is a moment in which Ctrl-C shows a traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

INTERRUPTED = 130
DELAY_S = 0.01


def main(arguments: list[str] | None = None) -> int:
    """Run a command line, by default that of the process, and return the exit status."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda ignored: _interrupt_again(ignored, before)
    try:
        # libraries take half a second to load, and Ctrl-C must end that quietly too
        from tilewright.cli.app import run  # noqa: PLC0415

        status = int(run(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("interrupted; nothing half-done is left\n")
        status = INTERRUPTED
    finally:
        sys.unraisablehook = before
    if status == INTERRUPTED:
        # CPython ends a process by SIGINT if Ctrl-C came while it ran the text of an exec, as
        # dataclasses do, whatever the exit status; running another text makes it forget
        exec("")
    return status


def _interrupt_again(
    ignored: "sys.UnraisableHookArgs", before: "Callable[[sys.UnraisableHookArgs], object]"
) -> None:
    """Repeat a Ctrl-C that came in a finalizer or a weak reference's callback, where it is lost.

    Any other exception goes to the hook that was there before.
    """
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        # in a thread and later: raised in this function it would be ignored, too
        import threading  # noqa: PLC0415
        from _thread import interrupt_main  # noqa: PLC0415

        threading.Timer(DELAY_S, interrupt_main).start()
    else:
        before(ignored)
