"""Makes a virtual environment from a hashed lock file: whole or not at all, by one process at a time.

Called by environment.sh as `python -I .ci/environment.py ROOT ENV LOCK`, with the standard library only. An environment
is whole when `ENV/made-from` holds the bytes of the lock. `ENV/made-for` holds the path of the checkout; written first,
it also tells an environment of ours from somebody else's.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import urllib.parse
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path

# What an installer's output says, and the sentence for a person. The first that matches is told.
REASONS = {
    r"No space left": "The disk is full.",
    r"CERTIFICATE_VERIFY_FAILED|invalid peer certificate|UnknownIssuer": (
        "The package index showed a certificate that is not trusted here: set SSL_CERT_FILE (uv) or PIP_CERT (pip)."
    ),
    r"(?i)do not match the hashes|hash mismatch": (
        "A downloaded package is not the one that the lock file names. Nothing was installed."
    ),
    r"(?i)name resolution|name or service not known|nodename nor servname|connection refused|ConnectTimeout|timed out|"
    r"dns error|error sending request|NewConnectionError|network is unreachable|ProxyError|tunnel connection": (
        "The package index cannot be reached. The first call needs the network once"
        " (or UV_INDEX_URL, PIP_INDEX_URL naming an index that is near)."
    ),
    r"No matching distribution|no wheels? with a matching|has no usable wheels": (
        "The package index has no build of a package for this machine."
    ),
}

STEPS = ("Collecting", "Processing", "Downloading", "Building", "Installing", "Resolved", "Prepared", "Installed")


class CannotMake(Exception):
    """No environment, with the sentence that says why."""


def say(text: str) -> None:
    print(f"hermes: {text}", file=sys.stderr, flush=True)


def main(root: Path, env: Path, lock: Path) -> int:
    began = time.monotonic()
    try:
        env.parent.mkdir(parents=True, exist_ok=True)
        with alone(env) as held:
            if is_whole(env, root, lock):
                return 0
            make(root, env, lock, held)
    except KeyboardInterrupt:
        say("stopped; the next call begins again")
        return 130
    except CannotMake as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"{env} cannot be made: {error.strerror} ({error.filename})")
        return 1
    say(f"ready after {time.monotonic() - began:.0f} s")
    return 0


@contextlib.contextmanager
def alone(env: Path) -> Iterator[int]:
    """Holds the lock beside `env`. An installer inherits it, so that it holds even where only the parent was killed."""
    with Path(f"{env}.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another call is making {env.name}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def is_whole(env: Path, root: Path, lock: Path) -> bool:
    try:
        made_from, made_for = (env / "made-from").read_bytes(), (env / "made-for").read_text()
    except FileNotFoundError:
        return False
    runs = os.access(env / "bin" / "python", os.X_OK)
    return runs and made_from == lock.read_bytes() and made_for == f"{root}\n"


def make(root: Path, env: Path, lock: Path, held: int) -> None:
    if env.exists() and not (env / "made-for").exists():
        raise CannotMake(f"{env} is there and was not made by this program. Move it away, then call again.")
    wanted = lock.read_bytes()
    packages = len(re.findall(rb"^\S+==", wanted, re.MULTILINE))
    say(f"making {env} with Python {sys.version.split()[0]}: {packages} packages from the index, once")
    shutil.rmtree(env, ignore_errors=True)
    env.mkdir()
    (env / "made-for").write_text(f"{root}\n")
    venv.create(env, symlinks=True)
    install(env, lock, held)
    folder = sysconfig.get_path("purelib", "venv", {"base": str(env), "platbase": str(env)})
    Path(folder, "hermes.pth").write_text(f"{root / 'src'}\n")
    (env / "made-from").write_bytes(wanted)


def install(env: Path, lock: Path, held: int) -> None:
    """Install with uv where there is one, and with pip where there is none or it fails.

    The lock is the whole closure, so neither looks for dependencies: pip 23, that of Python 3.11, takes the newest
    release of a package that another one wants with extras, though the lock pins it, and then misses its hash.
    """
    locked = ["--no-deps", "--require-hashes", "-r", str(lock)]
    python = str(env / "bin" / "python")
    if uv := shutil.which("uv"):
        command = [uv, "pip", "install", "--python", python, "--compile-bytecode", *locked]
        if not run(command, held):
            return
        say("uv failed; trying pip")
    pip = [python, "-I", "-m", "pip"] if ensure_pip(python, held) else [python, "-I", str(fetch_pip(env, lock) / "pip")]
    quiet = ["--disable-pip-version-check", "--no-input", "--retries", "2", "--progress-bar", "off"]
    if output := run([*pip, "install", *quiet, *locked], held):
        (env / "install.log").write_text(output)
        raise CannotMake(reason(output, lock))


def run(command: list[str], held: int) -> str:
    """Run an installer, showing each package as it comes. The answer is empty, or the output of a failure."""
    show = progress_line if sys.stderr.isatty() else lambda _text: None
    lines: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        pass_fds=(held,),
        env={**os.environ, "PIP_USER": "0"},
    ) as process:
        for line in process.stdout or ():
            lines.append(line)
            show(line.strip())
    show("")
    return "".join(lines) + f"exit {process.returncode}" if process.returncode else ""


def progress_line(text: str) -> None:
    """Show what the installer works on, in place of the line before; its warnings are in the log of a failure."""
    if not text or text.startswith(STEPS):
        print(f"\r\033[K{text[: shutil.get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)


def ensure_pip(python: str, held: int) -> bool:
    if importlib.util.find_spec("ensurepip") is None:
        return False
    return not run([python, "-I", "-m", "ensurepip", "--default-pip"], held)


def fetch_pip(env: Path, lock: Path) -> Path:
    """Fetch the pip wheel that the lock names; for a Python that came without (Debian's, before python3-venv)."""
    say("this Python came without pip; fetching it")
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    pinned = re.search(r"^pip==(\S+)((?: \\\n    --hash=sha256:\w+)+)", lock.read_text(), re.MULTILINE)
    if pinned is None:
        raise CannotMake("There is no pip here. Debian, Ubuntu: apt install python3-venv")
    name = f"pip-{pinned[1]}-py3-none-any.whl"
    try:
        page = fetch(f"{index}/pip/").decode()
        link = re.search(rf'href="([^"#]*{re.escape(name)})', page)
        if link is None:
            raise CannotMake(f"{index} has no {name}. Debian, Ubuntu: apt install python3-venv")
        wheel = fetch(urllib.parse.urljoin(f"{index}/pip/", link[1]))
    except OSError as error:
        raise CannotMake(
            f"{reason(str(error), lock)} Or install pip: on Debian, Ubuntu apt install python3-venv"
        ) from error
    if hashlib.sha256(wheel).hexdigest() not in pinned[2]:
        raise CannotMake(f"{name} of {index} is not the file that {lock.name} names.")
    file = env / name
    file.write_bytes(wheel)
    return file


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        content: bytes = answer.read()
    return content


def reason(output: str, lock: Path) -> str:
    for pattern, sentence in REASONS.items():
        if re.search(pattern, output):
            return sentence
    tail = "\n        ".join(output.strip().splitlines()[-12:])
    return f"{lock.name} could not be installed:\n        {tail}"


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:4])))
