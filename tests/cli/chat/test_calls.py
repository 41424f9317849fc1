import json

from wcwidth import wcswidth

from hermes_agent.cli.chat.calls import (
    Call,
    diff_lines,
    ended_lines,
    failure,
    is_folded,
    running_line,
    short_result,
    unfolded,
    wished,
)
from hermes_agent.cli.chat.text import plain
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import ToolEnded
from hermes_agent.core.messages import Message, Role, Text, ToolCall, ToolResult

DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n one\n-two\n+zwei"


def call(summary: str = "read_file: a.txt", effect: Effect = Effect.READS, progress: str = "") -> Call:
    return Call(tool="read_file", summary=summary, effect=effect, began=10.0, progress=progress)


def ended(text: str, *, failed: bool = False, seconds: float = 1.23) -> ToolEnded:
    result = ToolResult(call_id="c", name="read_file", parts=(Text(text=text),), is_error=failed)
    message = Message(role=Role.TOOL, parts=(result,))
    return ToolEnded(turn=1, call_id="c", tool="read_file", message=message, is_error=failed, seconds=seconds)


def test_a_quick_call_has_no_clock_and_a_slow_one_has():
    assert plain(running_line(call(), 10.2, 60)) == "• read_file: a.txt"
    assert plain(running_line(call(), 12.5, 60)).endswith(" read_file: a.txt 2.5 s")


def test_the_spinner_moves():
    assert running_line(call(), 12.0, 60)[:9] != running_line(call(), 12.2, 60)[:9]


def test_a_running_call_shows_its_progress_in_one_line_that_fits():
    line = plain(running_line(call(progress="日本語の進み具合 " * 9), 12.0, 40))
    assert "日本語" in line
    assert wcswidth(line) <= 40


def test_what_stays_of_a_call():
    assert plain(ended_lines(ended("1|one\n2|two\n"), call(), 60)) == "✓ read_file: a.txt 1.2 s · 2 lines"
    assert plain(ended_lines(ended("Nothing found."), None, 60)) == "✓ read_file 1.2 s · Nothing found."


def test_a_call_that_never_started_is_named_by_what_was_asked_for():
    asked = wished(ToolCall(id="c", name="terminal", arguments={"timeout": 3, "command": "rm\nx"}))
    assert plain(ended_lines(ended("ok"), asked, 60)) == "✓ terminal: rm x 1.2 s · ok"
    assert wished(ToolCall(id="c", name="todo", arguments={})).summary == "todo"


def test_a_result_that_has_no_room_is_left_out():
    assert plain(ended_lines(ended("Nothing found here at all."), call("x" * 90), 40)) == f"✓ {'x' * 31}… 1.2 s"


def test_a_command_is_summed_up_by_its_only_line():
    assert short_result("3 passed\n[exit 0]", call(effect=Effect.EXEC)) == "3 passed"
    assert short_result("[exit 0]", call(effect=Effect.EXEC)) == ""
    assert short_result("a\nb\n", call()) == "2 lines"
    assert short_result("", None) == "nothing"


def test_ten_lines_of_an_output_are_shown_and_the_rest_is_folded():
    command = call("terminal: ls", effect=Effect.EXEC)
    few, many = "\n".join(f"l{n}" for n in range(10)), "\n".join(f"l{n}" for n in range(30))

    shown = plain(ended_lines(ended(f"{few}\n[exit 0]"), command, 60)).split("\n")
    assert shown == ["✓ terminal: ls 1.2 s", *(f"  l{n}" for n in range(10))]
    shown = plain(ended_lines(ended(f"{many}\n[exit 0]"), command, 60)).split("\n")
    assert shown[1:] == ["  l0", "  l1", "  l2", "  … 21 more lines (Ctrl-O)", *(f"  l{n}" for n in range(24, 30))]
    assert not is_folded(ended(few), command)
    assert is_folded(ended(many), command)
    assert unfolded(ended(many), command) == many
    wide = ended_lines(ended("日本語 " * 30 + "\nb\tc"), command, 40)
    assert all(wcswidth(line) <= 40 for line in plain(wide).split("\n"))


def test_a_new_file_is_shown_with_its_first_and_last_lines():
    arguments = {"path": "new.py", "content": "\n".join(f"x{n}" for n in range(12))}
    asked = wished(ToolCall(id="c", name="write_file", arguments=arguments))

    shown = plain(ended_lines(ended("Wrote new.py."), asked, 60)).split("\n")

    assert shown[:3] == ["✓ write_file: new.py 1.2 s · Wrote new.py.", "  +x0", "  +x1"]
    assert shown[-1] == "  +x11"
    assert len(shown) == 11
    assert unfolded(ended("Wrote new.py."), asked) == arguments["content"]


def test_a_plan_is_shown_item_by_item():
    plan = Call(tool="todo", summary="todo", effect=Effect.KEYED, began=0.0)
    text = "[x] 1: Read\n[>] 2: Mend: all\n[ ] 3: Test\n[-] 4: Ship"

    shown = plain(ended_lines(ended(text), plan, 60)).split("\n")

    assert shown == ["✓ todo 1.2 s", "  ✓ Read", "  ▸ Mend: all", "  ○ Test", "  - Ship"]
    assert plain(ended_lines(ended("The plan is empty."), plan, 60)) == "✓ todo 1.2 s · The plan is empty."


def test_a_diff_is_below_its_line_without_its_head():
    shown = plain(ended_lines(ended(f"Patched x.py.\n{DIFF}"), call("patch: x.py"), 60))
    assert shown == "✓ patch: x.py 1.2 s · Patched x.py.\n  @@ -1,2 +1,2 @@\n   one\n  -two\n  +zwei"


def test_a_long_diff_is_counted():
    shown = plain(diff_lines(DIFF + "\n+more" * 100)).split("\n")
    assert len(shown) == 41
    assert shown[-1] == "  … 64 more lines"


def test_a_failure_is_a_sentence_in_red():
    text = json.dumps({"error": "There is no such file.", "kind": "failed", "hint": "Look with search_files."})
    shown = ended_lines(ended(text, failed=True), call(), 30)
    assert plain(shown) == "✗ read_file: a.txt 1.2 s\n  There is no such file. Look\n  with search_files."
    assert "\x1b[31m  There" in shown


def test_a_failure_in_other_words_is_shown_as_it_is():
    assert failure("it broke\x1b[2J") == "it broke"
    assert failure("[1]") == "[1]"


def test_a_command_that_failed_is_red_with_its_exit_code():
    def line(text: str, effect: Effect = Effect.EXEC, columns: int = 60) -> str:
        return ended_lines(ended(text), call("terminal: make " + "x" * 20, effect=effect), columns)

    assert plain(line("E: no\n[exit 2]")) == f"✗ terminal: make {'x' * 20} 1.2 s · exit 2 · E: no"
    assert line("E: no\n[exit 2]").startswith("\x1b[31m✗")
    assert "\x1b[31m · exit 2" in line("E: no\n[exit 2, 3.0 s]\n[the output was cut]")
    assert "exit 2" in plain(line("[exit 2]", columns=34))
    assert plain(line("fine\n[exit 0]")).startswith("✓")
    assert plain(line("a file says\n[exit 2]", Effect.READS)).startswith("✓")


def test_no_line_of_a_call_is_wider_than_a_terminal_of_20_columns():
    command = call("terminal: make everything", effect=Effect.EXEC)
    many = "\n".join(f"日本語 {n}" for n in range(30))
    for text in (f"{many}\n[exit 2]", "no\n[exit 127]", many, DIFF):
        shown = plain(ended_lines(ended(text), command, 19)).split("\n")
        assert all(wcswidth(line) <= 19 for line in shown), shown
