"""The careful half of the two commands: pip, hashes, and the sentences for what can go wrong."""

import functools
import hashlib
import http.server
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import environment
import pytest

ENVIRONMENT = Path(environment.__file__)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that stands for the package index and holds one package, `tiny`."""
    folder = tmp_path_factory.mktemp("wheels")
    for name, version, wants in (("tiny", "1.0", ""), ("tiny", "2.0", ""), ("wants", "1.0", "tiny[more]")):
        with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}.py", "SIZE = 1\n")
            info, tag = f"{name}-{version}.dist-info", "Root-Is-Purelib: true\nTag: py3-none-any\n"
            required = f"Requires-Dist: {wants}\n" if wants else ""
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}")
            wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\n{tag}")
            wheel.writestr(f"{info}/RECORD", "")
    return folder


def digest_of(wheels: Path, name: str) -> str:
    return hashlib.sha256((wheels / f"{name}-1.0-py3-none-any.whl").read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Path:
    """One whose environment pip made, from a lock that names `tiny`."""
    root = tmp_path_factory.mktemp("checkout")
    result = make(root, lock_of(root, digest_of(wheels, "tiny")), PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))
    assert (result.returncode, "1 packages" in result.stderr) == (0, True), result.stderr
    return root


def lock_of(root: Path, digest: str, version: str = "1.0") -> Path:
    """A lock that names `tiny` with this hash, or with none."""
    file = root / "requirements.lock"
    file.write_text(f"tiny=={version}" + (f" \\\n    --hash=sha256:{digest}\n" if digest else "\n"))
    return file


def make(root: Path, lock: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(ENVIRONMENT), str(root), str(root / ".venv"), str(lock)],
        env={"PATH": "/usr/bin:/bin", "HOME": str(root), **more},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_pip_installs_what_the_lock_names(checkout: Path):
    python = checkout / ".venv/bin/python"
    assert (
        subprocess.run([python, "-I", "-c", "import tiny; print(tiny.SIZE)"], capture_output=True, check=True).stdout
        == b"1\n"
    )


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_newer_release_of_what_is_pinned_changes_nothing(tmp_path: Path, wheels: Path):
    lock = lock_of(tmp_path, digest_of(wheels, "tiny"))
    lock.write_text(lock.read_text() + f"wants==1.0 \\\n    --hash=sha256:{digest_of(wheels, 'wants')}\n")
    result = make(tmp_path, lock, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_package_that_is_not_the_one_in_the_lock_is_refused(tmp_path: Path, wheels: Path):
    result = make(tmp_path, lock_of(tmp_path, "0" * 64), PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))
    assert result.returncode == 1
    assert "is not the one that the lock file names" in result.stderr
    assert not (tmp_path / ".venv/made-from").exists()


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("digest", "variables", "sentence"),
    [
        ("", {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "{wheels}"}, "Hashes are required"),
        ("0" * 64, {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}, "index cannot be reached"),
    ],
    ids=["a lock without hashes", "no network"],
)
def test_what_pip_refuses_is_a_sentence(
    checkout: Path,
    wheels: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    digest: str,
    variables: dict[str, str],
    sentence: str,
):
    for name, value in {"PATH": "/usr/bin:/bin", **variables}.items():
        monkeypatch.setenv(name, value.format(wheels=wheels))
    with (tmp_path / "held").open("w") as held, pytest.raises(environment.CannotMake, match=sentence):
        environment.install(checkout / ".venv", lock_of(tmp_path, digest, "2.0"), held.fileno())


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package index on loopback; the folder where it keeps pip."""
    folder = tmp_path / "index" / "pip"
    folder.mkdir(parents=True)
    handler = functools.partial(QuietHandler, directory=str(tmp_path / "index"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/")
        yield folder
        server.shutdown()
        serving.join()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    file = tmp_path / "requirements.lock"
    digests = f"    --hash=sha256:{'1' * 64} \\\n    --hash=sha256:{hashlib.sha256(b'pip itself').hexdigest()}\n"
    file.write_text(f"idna==3.20 \\\n    --hash=sha256:{'2' * 64}\npip==26.3 \\\n{digests}")
    return file


def test_a_python_without_pip_gets_the_one_that_the_lock_names(tmp_path: Path, index: Path, lock: Path):
    (index / "index.html").write_text(
        '<a href="pip-26.3-py3-none-any.whl#sha256=1">pip</a> <a href="pip-9.whl">old</a>'
    )
    (index / "pip-26.3-py3-none-any.whl").write_bytes(b"pip itself")
    assert environment.fetch_pip(tmp_path, lock).read_bytes() == b"pip itself"


def test_a_pip_that_was_tampered_with_is_refused(tmp_path: Path, index: Path, lock: Path):
    (index / "index.html").write_text('<a href="pip-26.3-py3-none-any.whl">pip</a>')
    (index / "pip-26.3-py3-none-any.whl").write_bytes(b"not pip")
    with pytest.raises(environment.CannotMake, match=r"is not the file that requirements\.lock names"):
        environment.fetch_pip(tmp_path, lock)
    assert not list(tmp_path.glob("*.whl"))


def test_an_index_without_that_pip_is_named(tmp_path: Path, index: Path, lock: Path):
    (index / "index.html").write_text('<a href="pip-9.0-py3-none-any.whl">pip</a>')
    with pytest.raises(environment.CannotMake, match=r"has no pip-26\.3"):
        environment.fetch_pip(tmp_path, lock)


def test_no_pip_and_no_network_says_both_ways_on(tmp_path: Path, lock: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(environment.CannotMake, match=r"cannot be reached.*apt install python3-venv"):
        environment.fetch_pip(tmp_path, lock)


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full."),
        ("invalid peer certificate: UnknownIssuer", "set SSL_CERT_FILE"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", "is not the one"),
        ("error: Hash mismatch for `idna==3.20`", "is not the one"),
        ("Failed to establish a new connection: [Errno -3] Temporary failure in name resolution", "cannot be reached"),
        ("  Caused by: dns error", "cannot be reached"),
        ("ERROR: No matching distribution found for apsw==3.54.1.0", "has no build"),
        ("something\nnobody has seen", "requirements.lock could not be installed:\n        something\n"),
    ],
)
def test_a_failure_becomes_a_sentence(output: str, sentence: str):
    assert sentence in environment.reason(output, Path("requirements.lock"))


def test_a_place_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "file").touch()
    (tmp_path / "requirements.lock").touch()
    assert environment.main(tmp_path, tmp_path / "file" / ".venv", tmp_path / "requirements.lock") == 1
    assert "cannot be made: File exists" in capsys.readouterr().err
