"""Flows written for Vortex, and their state, against second models."""
