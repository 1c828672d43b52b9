"""The run record: schema, hashes, writer. Nobody else defines a JSON field."""

__all__: tuple[str, ...] = ()
