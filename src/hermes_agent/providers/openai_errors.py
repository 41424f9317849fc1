"""The kinds and codes of errors as OpenAI names them, and everybody who speaks one of its protocols."""

from __future__ import annotations

from hermes_agent.core.errors import (
    AuthRefused,
    ContentRefused,
    ContextTooLong,
    ModelNotFound,
    OutOfCredit,
    Overloaded,
    RateLimited,
    ServerFailed,
    ThinkingRefused,
)
from hermes_agent.providers.wire import Table

ERRORS: Table = {
    "billing_hard_limit_reached": OutOfCredit,
    "billing_not_active": OutOfCredit,
    "content_filter": ContentRefused,
    "content_policy_violation": ContentRefused,
    "context_length_exceeded": ContextTooLong,
    "exceed_context_size_error": ContextTooLong,
    "insufficient_quota": OutOfCredit,
    "image_content_policy_violation": ContentRefused,
    "invalid_api_key": AuthRefused,
    "invalid_encrypted_content": ThinkingRefused,
    "model_not_found": ModelNotFound,
    "overloaded": Overloaded,
    "overloaded_error": Overloaded,
    "previous_response_not_found": ThinkingRefused,
    "rate_limit_exceeded": RateLimited,
    "server_error": ServerFailed,
    "server_is_overloaded": Overloaded,
    "slow_down": RateLimited,
    "usage_limit_reached": RateLimited,
    "usage_not_included": OutOfCredit,
}
