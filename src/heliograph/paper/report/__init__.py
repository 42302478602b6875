"""The page of all experiments: figures, tables and sentences."""
