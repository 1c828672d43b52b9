"""Runs a kernel's programs: streams, issue, effects, messages, and what a sanitizer sees."""
