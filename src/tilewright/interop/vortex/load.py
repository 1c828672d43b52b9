"""Flows and sessions of files that were written for Vortex, with its names at hand."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tilewright.attention.flow as our_flow
import tilewright.attention.verify as our_verify
from tilewright.attention.backends import reference
from tilewright.attention.flow import FlowBase
from tilewright.attention.flow.config import VortexConfig
from tilewright.attention.graph import DType
from tilewright.interop.vortex.alias import vortex_names
from tilewright.models import ModelShape


def load_flows(path: str | Path) -> Mapping[str, type[FlowBase]]:
    """Run a flow file and return the flows that it registers, at least one.

    The file may import tilewright's names or Vortex's, also inside its functions.
    """
    return our_flow.load_flows(path, vortex_names)


def find_flow(
    flow: str, init_kwargs: Mapping[str, object] | None = None, *, name: str | None = None
) -> tuple[str, FlowBase]:
    """Return a ready flow by name, or the flow of a file (``name`` picks one of several).

    Whatever ends in ``.py`` or has a path separator is a file, as in `load_flows`.
    """
    return our_flow.find_flow(flow, init_kwargs, name=name, names=vortex_names)


def session_of_config(
    config: VortexConfig,
    shape: ModelShape,
    *,
    num_requests: int = 1,
    kv_dtype: DType = DType.BFLOAT16,
    namespace: str = "numpy",
) -> reference.Session:
    """Build what a config asks for on the reference backend; ``module_path`` as in `load_flows`."""
    return reference.session_of_config(
        config,
        shape,
        num_requests=num_requests,
        kv_dtype=kv_dtype,
        namespace=namespace,
        names=vortex_names,
    )


def check_engine_config(
    config: VortexConfig | Mapping[str, Any] | str, **model: Any
) -> tuple[our_verify.ConfigCheck, ...]:
    """Make all checks of a config ahead of an engine; ``module_path`` as in `load_flows`."""
    return our_verify.check_engine_config(config, names=vortex_names, **model)
