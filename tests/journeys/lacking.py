"""Starts a program on a kernel that seems to lack something: `python lacking.py landlock,listener PROGRAM WORD ...`."""

import errno
import os
import platform
import sys

from hermes_agent.sandbox.landlock import ADD, CREATE, RESTRICT, SET_NO_NEW_PRIVS
from hermes_agent.sandbox.seccomp import (
    ALLOWED,
    HAS,
    LOAD_FILTER,
    NEW_LISTENER,
    argument,
    checked,
    error,
    head,
    libc,
    load,
    numbers,
    packed,
    when,
)

LACKING = {
    "landlock": [step for call in (CREATE, ADD, RESTRICT) for step in when(call, [error(errno.ENOSYS)])],
    "listener": [
        step
        for call in numbers(LOAD_FILTER).values()
        for step in when(call, [argument(1), (HAS, 0, 1, NEW_LISTENER), error(errno.EINVAL), ALLOWED])
    ],
}

if __name__ == "__main__":
    steps = [step for name in sys.argv[1].split(",") for step in LACKING[name]]
    checked(libc().prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    load(packed([*head(platform.machine()), *steps, ALLOWED]))
    os.execv(sys.argv[2], sys.argv[2:])
