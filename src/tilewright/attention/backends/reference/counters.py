"""What a session did: the proof of which path ran, and what it touched."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class ByteCounts:
    """Bytes by kind, as fields are stored; indices and queries are not counted."""

    kv_read: int = 0
    kv_written: int = 0
    summary_read: int = 0
    summary_written: int = 0
    state_read: int = 0
    state_written: int = 0


@dataclass(slots=True)
class Counters:
    """Rows are counted once for each query token, layer and KV head."""

    sparse_rows: int = 0
    dense_rows: dict[str, int] = field(default_factory=dict)  # by reason: skipped, short, fits
    pages_scored: int = 0
    pages_selected: int = 0  # by rows that selected; reserved ones included
    pages_read: int = 0
    nan_scores: int = 0
    reused_selections: int = 0
    num_bytes: ByteCounts = field(default_factory=ByteCounts)

    def count_dense(self, reason: str) -> None:
        self.dense_rows[reason] = self.dense_rows.get(reason, 0) + 1
