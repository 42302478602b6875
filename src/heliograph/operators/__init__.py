"""The operators room."""
