"""The record of one simulated run, and of a sweep of runs."""
