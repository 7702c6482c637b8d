"""Prefix: an immutable view of the first items of an append-only list, taken in O(1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class Prefix(Sequence[T], Generic[T]):
    """The first ``length`` items of a list that its owner only ever appends to.

    Args:
        items: shared, not copied; the owner promises never to change or remove an item.
        length: how many items belong to the view.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[T], length: int) -> None:
        self._items = items
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._length)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(self._items[at] for at in range(*index.indices(self._length)))
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._items[index % self._length]

    def __repr__(self) -> str:
        return f"Prefix({self._length} of {len(self._items)} items)"

    def shares_list(self, other: Prefix[T]) -> bool:
        """Whether both views look at one list, so that the shorter is a prefix of the longer."""
        return self._items is other._items
