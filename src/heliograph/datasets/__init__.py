"""The datasets room."""
