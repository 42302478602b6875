"""The oracles room."""
