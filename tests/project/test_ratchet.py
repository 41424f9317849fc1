import ratchet

VENDOR, LOOP = "src/hermes_agent/providers/vendor.py", "src/hermes_agent/agent/loop.py"
CORE = "src/hermes_agent/core/clock.py"
LONG = {VENDOR: 300, LOOP: 300, CORE: 300}


def test_a_file_below_its_floor_is_named():
    assert ratchet.shortfalls({VENDOR: 87}, {VENDOR: 92}, LONG) == [f"{VENDOR}: 87 % covered, of at least 88 %"]
    assert ratchet.shortfalls({VENDOR: 88}, {VENDOR: 92}, LONG) == []


def test_a_short_file_may_miss_a_few_lines():
    assert ratchet.shortfalls({VENDOR: 90}, {VENDOR: 98}, {VENDOR: 33}) == []
    assert ratchet.shortfalls({VENDOR: 88}, {VENDOR: 98}, {VENDOR: 33}) != []


def test_core_agent_and_store_are_covered_whole():
    least = 100 - ratchet.SLACK
    assert ratchet.shortfalls({LOOP: least - 1, CORE: 99}, {LOOP: 50}, LONG) == [
        f"{LOOP}: {least - 1} % covered, of at least {least} %",
        f"{CORE}: 99 % covered, of at least 100 %",
    ]
    assert ratchet.shortfalls({LOOP: least, CORE: 100}, {}, LONG) == []


def test_a_new_file_begins_with_a_floor():
    assert ratchet.shortfalls({VENDOR: ratchet.NEW_FILE - ratchet.SLACK - 1}, {}, LONG) != []
    assert ratchet.shortfalls({VENDOR: ratchet.NEW_FILE - ratchet.SLACK}, {}, LONG) == []


def test_raising_never_lowers_and_forgets_what_is_gone():
    assert ratchet.raised({VENDOR: 90, LOOP: 100}, {VENDOR: 95, "gone.py": 80}) == {VENDOR: 95}
    assert ratchet.raised({VENDOR: 97}, {VENDOR: 95}) == {VENDOR: 97}


def test_what_was_not_reached_is_told_as_ranges_and_jumps():
    figures = ratchet.Figures(
        summary={"percent_covered": 90.0, "num_statements": 20},
        missing_lines=[3, 4, 5, 9],
        missing_branches=[[2, 3], [9, 10], [12, 14]],
    )
    assert ratchet.not_reached(figures) == "3-5, 9, 12->14"
