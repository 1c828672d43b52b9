"""Placement of tensors: which PE has which indices, and in which pages."""
