from tests.cli.chat.conftest import Open

IDLE = " idle ·"


def test_ctrl_c_stops_the_run_and_a_second_one_leaves(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("hang on\r")
    terminal.wait_for("slow slow")

    terminal.send("\x03")
    terminal.wait_for("Stopped", "Ctrl-C again leaves")
    terminal.send("\x03")

    assert terminal.wait_for_end() == 0
    assert "hermes --resume 20" in terminal.text


def test_ctrl_c_clears_what_is_typed_before_it_leaves(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("half a sent")
    terminal.wait_for("> half a sent")

    terminal.send("\x03")

    terminal.wait_until(lambda: "half" not in terminal.text, "an empty input")
    assert terminal.process.poll() is None


def test_a_pasted_text_of_many_lines_is_one_message(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("\x1b[200~line one\r\nline two\nzeile drei\x1b[201~")
    terminal.wait_for("zeile drei")
    terminal.send("\r")

    terminal.wait_for(r"You said: 'line one\nline two\nzeile drei'", IDLE)


def test_three_ways_to_a_new_line(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("one\x1b\rtwo\nthree\\\rfour\r")

    terminal.wait_for(r"You said: 'one\ntwo\nthree\nfour'")


def test_a_command_is_completed(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("/statu")
    terminal.wait_for("Show where this session stands.")
    terminal.send("\t\r")

    terminal.wait_for("> /status", "Run      none")


def test_ctrl_d_leaves(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("\x04")

    assert terminal.wait_for_end() == 0
