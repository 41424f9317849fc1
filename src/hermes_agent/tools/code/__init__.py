"""execute_code: programs in the place that call tools."""
