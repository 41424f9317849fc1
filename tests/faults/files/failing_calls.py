"""Runs `hermes` in a process in which a call of the operating system fails.

`python failing_calls.py EVENT NUMBER ERRNO WORDS...`: the call of that audit event (`os.remove`, `os.rename`,
`os.scandir`, `open`, ...) that is the NUMBER-th on something below HERMES_HOME fails with ERRNO (0: none does), and
each later one of the same kind on the same path. At the end the number of such calls is written beside the home.
"""

import atexit
import os
import sys
from pathlib import Path

EVENT, NUMBER, ERRNO = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
HOME = os.path.realpath(os.environ["HERMES_HOME"])
paths: list[str] = []


def fail(event: str, arguments: tuple[object, ...]) -> None:
    if event != EVENT or not isinstance(arguments[0], str | bytes | os.PathLike):
        return
    path = os.path.realpath(os.fsdecode(arguments[0]))
    if not path.startswith(HOME):
        return
    paths.append(path)
    if len(paths) >= NUMBER and path == paths[NUMBER - 1] and ERRNO:
        raise OSError(ERRNO, os.strerror(ERRNO), path)


def count() -> None:
    Path(f"{HOME}.calls").write_text(f"{len(paths)}")


sys.argv = ["hermes", *sys.argv[4:]]
from hermes_agent.cli.main import main  # noqa: E402  the words before are this file's own

atexit.register(count)
sys.addaudithook(fail)
sys.exit(main())
