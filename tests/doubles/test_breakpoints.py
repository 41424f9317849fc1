from tests.doubles.breakpoints import LOOK_BACK, BreakpointCache


def blocks(*marks: bool):
    return [({"text": f"{place} " * 40}, mark) for place, mark in enumerate(marks)]


def test_a_marked_prefix_is_written_once_and_read_afterwards():
    cache = BreakpointCache()

    read, written = cache.account("m", blocks(True, False))
    assert (read, written > 0) == (0, True)
    assert cache.account("m", blocks(True, False)) == (written, 0)
    assert cache.account("another", blocks(True, False))[0] == 0


def test_a_later_mark_finds_an_earlier_prefix_within_reach():
    cache = BreakpointCache()
    first = cache.account("m", blocks(True))[1]

    read, written = cache.account("m", blocks(False, False, True))
    assert (read, written > 0) == (first, True)
    far = blocks(*[False] * (LOOK_BACK + 5), True)
    assert BreakpointCache().account("m", far)[0] == 0


def test_nothing_is_cached_without_a_mark():
    cache = BreakpointCache()

    assert cache.account("m", blocks(False)) == cache.account("m", blocks(False)) == (0, 0)
