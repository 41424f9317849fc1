"""Signing in to Anthropic, for programs and organisations to which it has given a client of their own.

Anthropic's terms do not let other programs use a Claude subscription, so no client is built in.
"""

from __future__ import annotations

from hermes_agent.providers.signin.facts import SignIn

SIGN_IN = SignIn(
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
