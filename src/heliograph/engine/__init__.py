"""The engine room."""
