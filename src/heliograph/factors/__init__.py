"""The factors room."""
