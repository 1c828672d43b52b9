"""Flow files: run one, and make the flow that it registers under a name."""

import ast
import inspect
import sys
import traceback
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType, ModuleType

from tilewright.attention.abs.author import is_library
from tilewright.attention.flow.flow import FlowBase
from tilewright.attention.flow.package import (
    ImportNames,
    builtins_with,
    find_package,
    import_from_package,
)
from tilewright.attention.flow.registry import collect_flows, get, list_keys
from tilewright.errors import (
    FlowError,
    FlowInitError,
    FlowLoadError,
    TilewrightError,
    UnknownImportError,
)
from tilewright.records import read_text_file
from tilewright.trust import check_code_allowed


def find_flow(
    flow: str,
    init_kwargs: Mapping[str, object] | None = None,
    *,
    name: str | None = None,
    names: ImportNames = nullcontext,
) -> tuple[str, FlowBase]:
    """Return a ready flow by name, or the flow of a file (``name`` picks one of several).

    Whatever ends in ``.py`` or has a path separator is a file; ``names`` as in `load_flows`.
    """
    if not (flow.endswith(".py") or "/" in flow):
        if name is not None and name != flow:
            expected, fix = "a name for a flow of a file", "leave the name out, or give the file"
            raise FlowLoadError(f"flow {flow!r}", f"the name {name!r} beside it", expected, fix)
        return flow, make_flow(flow, get(flow), init_kwargs)
    flows = load_flows(flow, names)
    if name is None and len(flows) > 1:
        expected, fix = "the name of one of them", "say which"
        raise FlowLoadError(flow, f"flows {', '.join(flows)}", expected, fix)
    chosen = name or next(iter(flows))
    if chosen not in flows:
        fix = f"ready flows are {', '.join(list_keys())}"
        raise FlowLoadError(flow, f"no flow {chosen!r}", f"one of {', '.join(flows)}", fix)
    return chosen, make_flow(chosen, flows[chosen], init_kwargs)


def build_vflow(
    selected: str,
    init_kwargs: Mapping[str, object] | None = None,
    user_file: str | Path | None = None,
    *,
    names: ImportNames = nullcontext,
) -> FlowBase:
    """Build the flow registered as ``selected``: by the file if one is given, else by an import.

    ``names`` as in `load_flows`.
    """
    if user_file is None:
        return make_flow(selected, get(selected), init_kwargs)
    flows = load_flows(user_file, names)
    if selected not in flows:
        expected = f"one of {', '.join(flows)}"
        fix = f"register it in the file; imported flows are {', '.join(list_keys()) or 'none'}"
        raise FlowLoadError(str(user_file), f"no flow {selected!r}", expected, fix)
    return make_flow(selected, flows[selected], init_kwargs)


def load_flows(path: str | Path, names: ImportNames = nullcontext) -> Mapping[str, type[FlowBase]]:
    """Run a flow file and return the flows that it registers, at least one.

    ``names`` makes further modules importable for the file: while it runs, and for import
    statements in its functions whenever they run. Nothing stays registered. Raises
    CodeRefusedError, before anything runs, where code of files is refused.
    """
    file = Path(path)
    text = read_text_file(file, "a Python file with a registered flow", FlowLoadError)
    check_code_allowed(f"{file} line 1", "a flow file, all of which would run")
    with collect_flows() as flows, names():
        module = _execute(file, text, names)
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
    signature = inspect.signature(flow)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        expected = f"{flow.__name__}{signature}"
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
        where, fix = f"flow {name!r}, __init__, {source}", fix_of(error, "correct the constructor")
        raise FlowInitError(where, found, "a flow", fix, name, "__init__", source) from error


def raising_line(error: BaseException) -> str:
    """Return file and line of the deepest frame that is the author's, not the library's."""
    lines = [
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not is_library(frame.filename)
    ]
    return lines[-1] if lines else ""


def fix_of(error: BaseException, otherwise: str) -> str:
    """Return what to do about an error of the author's code, if that is known."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    if (name or "").partition(".")[0] == "vortex_torch":
        names = "find_flow, build_vflow or session_of_config"
        return f"load it with {names} of tilewright.interop.vortex"
    return otherwise


def _execute(file: Path, text: str, names: ImportNames) -> str:
    """Run a flow file, in its package if it has one; return the name of its module."""
    try:
        tree = ast.parse(text, str(file))
        package = find_package(file, tree)
        if package is not None:
            return import_from_package(package, names)
        return _run_alone(file, tree, names)
    except UnknownImportError as error:
        raise FlowLoadError(*error.args) from error
    except TilewrightError:
        raise
    except SyntaxError as error:
        found, fix = f"a syntax error: {error.msg}", "correct the line"
        where = f"{error.filename or file}:{error.lineno or 1}"  # no line: a zero byte
        raise FlowLoadError(where, found, "Python", fix, source=where) from error
    except ImportError as error:
        fix = fix_of(error, "install what it imports, or leave the import out")
        where = f"{file}, {raising_line(error)}"
        found = f"an import that fails: {error}"
        raise FlowLoadError(where, found, "a file that imports", fix) from error
    except (Exception, SystemExit) as error:  # the border to the author's code
        found = f"{type(error).__name__}: {error}"
        where = f"{file}, {raising_line(error)}"
        raise FlowLoadError(where, found, "a file that runs", "correct it") from error


def _run_alone(file: Path, tree: ast.Module, names: ImportNames) -> str:
    module = ModuleType(f"flow_file_{file.stem}")
    module.__file__ = str(file)
    module.__dict__["__builtins__"] = builtins_with(names)
    sys.modules[module.__name__] = module  # dataclasses and pickle look it up
    try:
        exec(compile(tree, str(file), "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module.__name__
