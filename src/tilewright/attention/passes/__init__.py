"""Graph to graph, one file for each pass, verified before and after."""

from tilewright.attention.passes.pipeline import PASSES, Pass, optimize_graph, run_pass

__all__ = ("PASSES", "Pass", "optimize_graph", "run_pass")
