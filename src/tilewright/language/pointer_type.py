"""The dtype of addresses."""

from tilewright.language.dtype import DType, dtype_of

__all__ = ("PointerType",)


class PointerType:
    """The dtype of addresses: what they point to."""

    __slots__ = ("element_ty",)

    def __init__(self, element_ty: DType | str) -> None:
        self.element_ty = element_ty if type(element_ty) is DType else dtype_of(element_ty)

    @property
    def scalar(self) -> "PointerType":
        return self

    def is_ptr(self) -> bool:
        return True

    def is_floating(self) -> bool:
        return False

    def is_int(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PointerType) and other.element_ty is self.element_ty

    def __hash__(self) -> int:
        return hash(self.element_ty)

    def __repr__(self) -> str:
        return f"pointer<{self.element_ty}>"
