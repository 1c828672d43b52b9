"""Checks a flow before it runs: shapes, lint, numbers against dense definitions."""

from tilewright.attention.verify.check import (
    DEFAULT_GEOMETRIES,
    check_flow,
    check_flows,
    geometries,
)
from tilewright.attention.verify.compilable import (
    DEFAULT_BLOCK_SIZES,
    DEFAULT_D_VALUES,
    DEFAULT_G_VALUES,
    DEFAULT_PAGE_BLOCK_RATIOS,
    DEFAULT_PAGES_PER_WORKLOAD,
    Config,
    Failure,
    VerifyReport,
    verify_flow_compilable,
)
from tilewright.attention.verify.engine_config import ConfigCheck, check_engine_config

__all__ = (
    "DEFAULT_BLOCK_SIZES",
    "DEFAULT_D_VALUES",
    "DEFAULT_GEOMETRIES",
    "DEFAULT_G_VALUES",
    "DEFAULT_PAGES_PER_WORKLOAD",
    "DEFAULT_PAGE_BLOCK_RATIOS",
    "Config",
    "ConfigCheck",
    "Failure",
    "VerifyReport",
    "check_engine_config",
    "check_flow",
    "check_flows",
    "geometries",
    "verify_flow_compilable",
)
