"""Starts a program on a machine that seems to have no Landlock: `python no_landlock.py PROGRAM WORD ...`."""

import errno
import os
import platform
import sys

from hermes_agent.sandbox.landlock import ADD, CREATE, RESTRICT, SET_NO_NEW_PRIVS
from hermes_agent.sandbox.seccomp import ALLOWED, checked, error, head, libc, load, packed, when

if __name__ == "__main__":
    refused = [step for call in (CREATE, ADD, RESTRICT) for step in when(call, [error(errno.ENOSYS)])]
    checked(libc().prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    load(packed([*head(platform.machine()), *refused, ALLOWED]))
    os.execv(sys.argv[1], sys.argv[1:])
