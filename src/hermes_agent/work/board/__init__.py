"""The board: cards that worker processes do, with dependencies, leases, receipts and workspaces."""
