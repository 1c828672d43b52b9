"""Work lists of one step, as tools of Vortex users read them."""

from dataclasses import dataclass, field

__all__ = ("MetaData",)


@dataclass
class MetaData:
    """Empty while a flow is traced: only a run has rows."""

    batch_size: int = 0
    dense_kv_indptr: list[int] = field(default_factory=list)
    dense_kv_indices: list[int] = field(default_factory=list)
    sparse_kv_indptr: list[int] = field(default_factory=list)
    sparse_kv_indices: list[int] = field(default_factory=list)
    block_tables: list[list[int]] = field(default_factory=list)
    seq_lens: list[int] = field(default_factory=list)
    kv_last_page_len: list[int] = field(default_factory=list)
