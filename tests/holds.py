"""How long the event loop was held still."""

import asyncio
from time import perf_counter


async def longest_hold() -> float:
    """Until it is cancelled: the longest time in seconds for which nothing else could run."""
    longest = 0.0
    while True:
        began = perf_counter()
        try:
            await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            return longest
        longest = max(longest, perf_counter() - began)
