"""Flow files: run one, and make the flow that it registers under a name."""

import ast
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import MappingProxyType, ModuleType

from tilewright.attention.flow.flow import FlowBase
from tilewright.attention.flow.package import find_package, import_from_package
from tilewright.attention.flow.registry import collect_flows, get, list_keys
from tilewright.errors import FlowError, FlowInitError, FlowLoadError, TilewrightError

__all__ = (
    "FlowInitError",
    "FlowLoadError",
    "build_vflow",
    "load_flow_file",
    "make_flow",
    "raising_line",
)

Names = Callable[[], AbstractContextManager[object]]


def build_vflow(
    selected: str,
    init_kwargs: Mapping[str, object] | None = None,
    user_file: str | Path | None = None,
) -> FlowBase:
    """The flow registered as ``selected``: by the file if one is given, else by an import."""
    if user_file is None:
        return make_flow(selected, get(selected), init_kwargs)
    flows = load_flow_file(user_file)
    if selected not in flows:
        expected = f"one of {', '.join(flows)}"
        fix = f"register it in the file; imported flows are {', '.join(list_keys()) or 'none'}"
        raise FlowLoadError(str(user_file), f"no flow {selected!r}", expected, fix)
    return make_flow(selected, flows[selected], init_kwargs)


def load_flow_file(path: str | Path, names: Names = nullcontext) -> Mapping[str, type[FlowBase]]:
    """Run a flow file and return the flows that it registers, at least one.

    ``names`` makes further modules importable while the file runs. Nothing stays registered.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fix = "name a Python file with a registered flow"
        raise FlowLoadError(str(path), f"no readable file ({error})", "a file", fix) from error
    with collect_flows() as flows, names():
        module = _execute(file, text)
    if not flows:
        fix = 'decorate a class with @register("name")'
        raise FlowLoadError(str(path), "no registered flow", "at least one", fix)
    own = {name: flow for name, flow in flows.items() if flow.__module__ == module}
    return MappingProxyType(own or flows)


def make_flow(
    name: str, flow: type[FlowBase], init_kwargs: Mapping[str, object] | None = None
) -> FlowBase:
    """Construct a flow; keyword arguments are checked against its constructor first."""
    arguments = dict(init_kwargs or {})
    try:
        inspect.signature(flow).bind(**arguments)
    except TypeError as error:
        expected = f"{flow.__name__}{inspect.signature(flow)}"
        where, fix = f"flow {name!r}", "pass what the constructor takes in init_kwargs"
        raise FlowInitError(where, str(error), expected, fix, flow=name) from None
    try:
        return flow(**arguments)
    except FlowError as error:
        raise error.located(flow=name, method="__init__", source=error.source) from error
    except TilewrightError:
        raise
    except (Exception, SystemExit) as error:  # the border to the author's code
        found, source = f"{type(error).__name__}: {error}", raising_line(error)
        where, fix = f"flow {name!r}, __init__, {source}", "correct the constructor"
        raise FlowInitError(where, found, "a flow", fix, name, "__init__", source) from error


def raising_line(error: BaseException) -> str:
    """File and line of the deepest frame that is the author's, not the library's."""
    package = str(Path(__file__).parents[1])
    flows = str(Path(package) / "flows")
    lines = [
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(package) or frame.filename.startswith(flows)
    ]
    return lines[-1] if lines else ""


def _execute(file: Path, text: str) -> str:
    """Run a flow file, in its package if it has one; return the name of its module."""
    try:
        tree = ast.parse(text, str(file))
        package = find_package(file, tree)
        if package is not None:
            return import_from_package(package)
        return _run_alone(file, tree)
    except TilewrightError:
        raise
    except SyntaxError as error:
        found, fix = f"a syntax error: {error.msg}", "correct the line"
        where = f"{error.filename or file}:{error.lineno}"
        raise FlowLoadError(where, found, "Python", fix, source=where) from error
    except ImportError as error:
        fix = "install what it imports, or import only tilewright, vortex_torch and torch"
        if getattr(error, "name", None) == "vortex_torch":
            fix = "call tilewright.attention.install_vortex_alias() first"
        where = f"{file}, {raising_line(error)}"
        found = f"an import that fails: {error}"
        raise FlowLoadError(where, found, "a file that imports", fix) from error
    except (Exception, SystemExit) as error:  # the border to the author's code
        found = f"{type(error).__name__}: {error}"
        where = f"{file}, {raising_line(error)}"
        raise FlowLoadError(where, found, "a file that runs", "correct it") from error


def _run_alone(file: Path, tree: ast.Module) -> str:
    module = ModuleType(f"flow_file_{file.stem}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # dataclasses and pickle look it up
    try:
        exec(compile(tree, str(file), "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module.__name__
