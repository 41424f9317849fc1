"""Signing in with ChatGPT: a code for one device, as Codex does it (github.com/openai/codex, codex-rs/login)."""

from __future__ import annotations

from hermes_agent.providers.signin.facts import SignIn

SIGN_IN = SignIn(
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
