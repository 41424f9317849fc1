"""What the demonstration of learning counts; the whole of it is run in tests/cli/commands/test_demo.py."""

from hermes_agent.cli.demo.learning import Took, compare, content, is_done


def test_what_was_saved_is_told_in_a_table(capsys):
    new = Took(calls=12, turns=13, tokens=40_000, seconds=12.0, done=True)
    learned = Took(calls=4, turns=5, tokens=10_000, seconds=6.0, done=True)
    compare(new, learned, learned)

    out = capsys.readouterr().out
    assert "tool calls" in out
    assert " 67 %" in out
    assert " 75 %" in out
    assert is_done(new, 12)
    assert not is_done(learned, 12)


def test_a_file_that_is_not_there_has_no_content(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    assert (content(tmp_path / "a"), content(tmp_path / "b")) == (b"x", b"")
