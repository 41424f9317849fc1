"""Whether a call may run: rules, what people answered, and the auxiliary model's opinion."""
