"""Ways to harm a machine, out of `harm.txt`, and the stores of credentials that they look for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

CREDENTIALS = tuple(
    """
.ssh/id_ed25519
.ssh/config
.aws/credentials
.azure/accessTokens.json
.kube/config
.docker/config.json
.config/gcloud/credentials.db
.config/gh/hosts.yml
.config/git/credentials
.git-credentials
.netrc
.npmrc
.pypirc
.pgpass
.my.cnf
.cargo/credentials.toml
.terraform.d/credentials.tfrc.json
.m2/settings.xml
.gradle/gradle.properties
.config/rclone/rclone.conf
.config/sops/age/keys.txt
.claude/.credentials.json
.codex/auth.json
.cache/huggingface/token
.huggingface/token
.local/share/keyrings/login.keyring
.mozilla/firefox/p.default/logins.json
.config/google-chrome/Default/Login Data
.config/chromium/Default/Cookies
.bash_history
.zsh_history
.python_history
.psql_history
.gnupg/private-keys-v1.d/key.key
.password-store/mail.gpg
.vault-token
.config/op/config
.electrum/wallets/default_wallet
.thunderbird/p.default/key4.db
.hermes-work/.env
""".strip().splitlines()
)


def commands(names: Mapping[str, str]) -> list[str]:
    """Each command, with these paths and addresses in it."""
    rows = [row for row in Path(__file__).with_suffix(".txt").read_text().splitlines() if not row.startswith("#")]
    found = [row.partition(" ")[2].strip() for row in rows]
    for name, value in names.items():
        found = [command.replace(f"{{{name}}}", value) for command in found]
    return found
