"""`kill -9` at any moment: what was committed is kept, what was done is not done again, and the work goes on."""

import random

import pytest

from bench.kills import Work, wrong_after
from bench.long_run import CALLS, REPORT, TURNS, LongRun
from hermes_agent.testing.model_servers import openai_model, serving_in_thread

SEED = 20


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_that_is_killed_again_and_again_ends_as_if_it_never_was(tmp_path, full):
    most = 25 if full else 6
    chance, script = random.Random(SEED), []
    with serving_in_thread(openai_model(lambda heard: script[0](heard))) as server:
        whole = Work(tmp_path, server.url)
        script.append(whole.prepare())
        assert whole.whole() == REPORT
        expected = whole.transcript()

        work = Work(tmp_path, server.url)
        work.prepare()
        rounds = 0
        while work.kills < most and rounds < 20:
            work.prepare()
            rounds += 1
            assert work.killed(chance, kills=min(12, most - work.kills), shortest=0.3, longest=1.2) == REPORT
            assert wrong_after(work, script[0], expected) == []

    assert work.kills >= most


@pytest.mark.timeout(120)
def test_a_long_run_on_a_real_source_tree_changes_the_right_files(tmp_path):
    script: list[LongRun] = []
    with serving_in_thread(openai_model(lambda heard: script[0](heard))) as server:
        work = Work(tmp_path, server.url)
        script.append(work.prepare())

        assert work.whole() == REPORT

    assert script[0].calls() == CALLS
    assert len(server.exchanges) == TURNS
    assert script[0].expected(work.folder / "work", work.folder / "pristine") == []
