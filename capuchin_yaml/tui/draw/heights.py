"""Heights of many entries with fast sums: a Fenwick tree."""

from __future__ import annotations

from collections.abc import Iterable


class Heights:
    """Heights in rows; `top(i)`, `at(y)`, `set` and `append` take O(log n)."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._values = list(heights)
        self._tree = [0, *self._values]
        for i in range(1, len(self._tree)):
            parent = i + (i & -i)
            if parent < len(self._tree):
                self._tree[parent] += self._tree[i]

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> int:
        return self._values[index]

    @property
    def total(self) -> int:
        """The height of all entries together."""
        return self.top(len(self._values))

    def top(self, index: int) -> int:
        """The row at which entry `index` begins."""
        total = 0
        while index > 0:
            total += self._tree[index]
            index -= index & -index
        return total

    def at(self, y: int) -> int:
        """The entry that covers row `y`; the nearest one when `y` is outside."""
        index = 0
        step = 1 << len(self._values).bit_length()
        left = max(y, 0)
        while step:
            probe = index + step
            if probe <= len(self._values) and self._tree[probe] <= left:
                index = probe
                left -= self._tree[probe]
            step >>= 1
        return min(index, max(len(self._values) - 1, 0))

    def set(self, index: int, height: int) -> None:
        """Entry `index` has another height."""
        change = height - self._values[index]
        self._values[index] = height
        i = index + 1
        while change and i < len(self._tree):
            self._tree[i] += change
            i += i & -i

    def append(self, height: int) -> None:
        """One more entry at the end."""
        self._values.append(height)
        i = len(self._values)
        total = height
        low = i - (i & -i)
        k = i - 1
        while k > low:
            total += self._tree[k]
            k -= k & -k
        self._tree.append(total)

    def pop(self) -> None:
        """Take the last entry away."""
        self._values.pop()
        self._tree.pop()
