"""The regression room."""
