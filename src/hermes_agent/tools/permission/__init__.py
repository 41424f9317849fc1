"""Permission for tool calls: rules, remembered approvals, and the auxiliary model's judgement."""
