"""Enumerations that flow files and tools of Vortex users import by these names and numbers."""

from enum import IntEnum


class Schedule(IntEnum):
    """Whether Vortex may fuse an op (W) or gives it a kernel of its own (S).

    Kept for tools that read it; here fusion follows from the graph.
    """

    W = 0
    S = 1


class Mode(IntEnum):
    """What a context is for: tracing, or running."""

    profile = 0
    execute = 1


class ReduceType(IntEnum):
    """Kinds of reductions."""

    Mean = 0
    Max = 1
    Min = 2
    L2Norm = 3
    Sum = 4


class ElementwiseOpType(IntEnum):
    """Kinds of element-wise ops on one value."""

    Relu = 0
    Sigmoid = 1
    Silu = 2
    Add_Mul = 3
    Abs = 4
    Log = 5
    Exp = 6


class ElementwiseBinaryOpType(IntEnum):
    """Kinds of element-wise ops on two values."""

    Maximum = 0
    Minimum = 1
    Multiply = 2
    Add = 3
    WhereEqual = 4
    WhereNotEqual = 5
    WhereGreater = 6
    WhereGreaterEqual = 7
    WhereLess = 8
    WhereLessEqual = 9


class QuantizationType(IntEnum):
    """How keys and values are stored."""

    none = 0
    fp8_e5m2 = 1
    fp8_e4m3 = 2
    int4 = 3
