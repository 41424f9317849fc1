"""The life of a gateway, from its start in the background to its log."""
