"""GEMM units against closed forms and a model of each cell of a systolic array."""
