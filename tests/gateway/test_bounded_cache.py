"""What is remembered has an end."""

from hermes_agent.gateway.bounded_cache import BoundedCache


def test_what_was_put_in_first_is_forgotten_first():
    cache = BoundedCache[str, int](2)
    for number, key in enumerate("abac"):
        cache.put(key, number)

    assert [cache.get(key) for key in "abc"] == [2, None, 3]


def test_what_is_too_old_is_asked_for_again():
    now = [5.0]
    cache = BoundedCache[str, str](2, 10.0, lambda: now[0])

    assert cache.put("a", "one") == cache.get("a") == "one"
    now[0] = 15.0
    assert cache.get("a") is None


def test_what_is_forgotten_is_gone():
    cache = BoundedCache[str, int](2)
    cache.put("a", 1), cache.put("b", 2)
    cache.pop("a"), cache.pop("a")
    assert (cache.get("a"), cache.get("b")) == (None, 2)
    cache.clear()

    assert cache.get("b") is None
