"""Whether work grows as what it is done on does, whatever the machine and whatever is measured meanwhile."""

from collections.abc import Callable
from time import process_time

SOON = 0.05
"""Seconds; what a text of ten thousand signs takes less of is not asked how it grows."""


def grows(work: Callable[[int], object], size: int) -> bool:
    """Whether `work(size)` takes more than eight times what a quarter takes: four is linear, sixteen is a square."""
    return (whole := taken(work, size)) > SOON and whole > 8 * taken(work, size // 4)


def taken(work: Callable[[int], object], size: int) -> float:
    """Seconds of work; of three tries the least, as other programs slow one down."""
    least = float("inf")
    for _ in range(3):
        began = process_time()
        work(size)
        if (least := min(least, process_time() - began)) < SOON:
            break
    return least
