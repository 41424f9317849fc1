"""The program around a program keeps its input for answers and its own names to itself."""

import subprocess
import sys

from hermes_agent.tools.code import _pieces, command, program


def run(code: str, answers: str = "") -> str:
    text = program(code, "mark ")
    done = subprocess.run([sys.executable, "-c", text], input=answers, capture_output=True, text=True, check=False)
    return done.stdout


def test_a_call_is_a_marked_line_and_its_answer_a_line_of_input():
    said = run("print(tools.look(at='ü'))", '-[false, "seen"]\n')

    assert said == '\nmark ["look", {"at": "\\u00fc"}]\nseen\n'


def test_an_answer_in_pieces_is_asked_for_piece_by_piece():
    said = run("print(tools.call('look'))", '+[false, "se\n-en"]\n')

    assert said == '\nmark ["look", {}]\n\nmark \nseen\n'


def test_where_nobody_answers_it_ends():
    assert "after" not in run("tools.look()\nprint('after')")


def test_its_names_are_not_the_programs():
    assert run("print(sorted(name for name in dir() if not name.startswith('__')))") == "['tools']\n"


def test_the_command_ends_the_program_by_a_line_that_is_not_in_it():
    assert command("print(1)", "END").splitlines()[-1] == "END"


def test_a_long_answer_is_cut_and_marked():
    pieces = _pieces(b"x" * 150_000)

    assert [piece[:1] for piece in pieces] == [b"+", b"+", b"-"]
    assert b"".join(piece[1:-1] for piece in pieces) == b"x" * 150_000
