"""Built-in programs: each module here has some in its ``PROGRAMS``, and a new one is found."""
