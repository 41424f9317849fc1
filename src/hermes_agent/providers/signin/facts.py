"""Facts of one vendor's sign-in: addresses, client id, and how tokens are requested, refreshed and sent."""

from __future__ import annotations

from typing import Literal

from hermes_agent.core.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """The facts of one sign-in.

    `issuer` is the address without a final slash; `issuer_env` names a variable that overrides it. `client_id` is
    the public OAuth client id; empty: the vendor gives one to each program or organisation, and a person sets
    theirs under `client_id_env`. `way` is `device` (a code is typed at `page`) or `code` (the page shows a code
    that is pasted here). `asks` is the encoding of the first token request. `headers` go with every model
    request; `{account}` in them is the account's id from the token's claim `account_claim` (`claim/inner`).
    `scope` is requested. `allowed` says, as a sentence, where the vendor's terms allow it.
    """

    vendor: str
    title: str
    issuer: str
    issuer_env: str
    way: Literal["device", "code"]
    page: str
    token_path: str
    client_id: str = ""
    client_id_env: str = ""
    asks: Literal["json", "form"] = "form"
    redirect: str = ""
    scope: str = ""
    account_claim: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    allowed: str = ""


# Signing in with ChatGPT: a code for one device, as Codex does it (github.com/openai/codex, codex-rs/login).
CHATGPT = SignIn(
    vendor="openai-codex",
    title="ChatGPT",
    issuer="https://auth.openai.com",
    issuer_env="OPENAI_AUTH_URL",
    way="device",
    page="/codex/device",
    token_path="/oauth/token",
    client_id="app_EMoamEEZ73f0CkXaXp7hrann",
    redirect="/deviceauth/callback",
    account_claim="https://api.openai.com/auth/chatgpt_account_id",
    headers=(("chatgpt-account-id", "{account}"), ("originator", "hermes")),
)


# Signing in to Anthropic, for programs and organisations to which it has given a client of their own.  Anthropic's
# terms do not let other programs use a Claude subscription, so no client is built in.
ANTHROPIC = SignIn(
    vendor="anthropic",
    title="Anthropic",
    issuer="https://platform.claude.com",
    issuer_env="ANTHROPIC_AUTH_URL",
    way="code",
    page="/oauth/authorize",
    token_path="/v1/oauth/token",
    client_id_env="ANTHROPIC_CLIENT_ID",
    asks="json",
    redirect="/oauth/code/callback",
    scope="user:inference user:profile",
    headers=(("anthropic-beta", "oauth-2025-04-20"),),
    allowed=(
        "Anthropic does not let other programs use a Claude subscription. Where it has given you or your organisation "
        "an OAuth client, put its id into ANTHROPIC_CLIENT_ID; otherwise use a key: ANTHROPIC_API_KEY, from "
        "https://platform.claude.com/settings/keys."
    ),
)
