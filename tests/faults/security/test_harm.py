"""Whatever a command does behind the wall, nobody else's file, secret, process or port is touched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.faults.security import throwaway
from tests.faults.security.harm import CREDENTIALS, commands

ORDINARY = "65534"
NAMES = {
    "home": throwaway.HOME,
    "person": throwaway.PERSON,
    "goods": throwaway.GOODS,
    "work": throwaway.WORK,
    "host": throwaway.HOST,
    "hermes": f"{throwaway.CHECKOUT}/hermes",
}


def harm(folder: Path, kind: str, uid: str, tried: Sequence[str]) -> Iterator[tuple[str, dict[str, object]]]:
    """Each command with what it did to the throw-away machine."""
    argv = ["unshare", "-m", "-n", "-u", "-i", sys.executable, throwaway.__file__, str(folder), kind, uid]
    lines = [{"credentials": list(CREDENTIALS)}, *({"command": each} for each in tried)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as rig:
        assert rig.stdin is not None
        assert rig.stdout is not None
        rig.stdin.write("".join(f"{json.dumps(line)}\n" for line in lines))
        rig.stdin.close()
        wall = json.loads(rig.stdout.readline() or "{}")
        assert wall == {"wall": "bubblewrap" if kind == "auto" else kind}
        for command, answer in zip(tried, rig.stdout, strict=False):
            yield command, json.loads(answer)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="a throw-away root needs root")
@pytest.mark.parametrize("uid", ["0", ORDINARY])
@pytest.mark.parametrize("kind", ["auto", "landlock"])
@pytest.mark.timeout(240)
@pytest.mark.slow
def test_no_command_harms_what_is_not_its_own(tmp_path: Path, kind: str, uid: str, full: bool):
    wanted = commands(NAMES) if full else commands(NAMES)[::7]
    tried = 0
    broken = []
    for command, did in harm(tmp_path, kind, uid, wanted):
        tried += 1
        if did["changed"] or did["heard"] or not did["bystander"] or throwaway.LEAKED.search(str(did["output"])):
            broken.append({"command": command, **did})
    assert tried == len(wanted)
    assert broken == []
