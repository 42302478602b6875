"""The paper's experiments, done again: a wing of its own that nothing else in the package imports.

Start reading at `registry.py` (every experiment by its name) or at a folder: `exp1` to `exp5`, `features`. `batch` and
`logistic.py` are what several experiments share, `rivals` the learners of earlier papers, `running` and `reproduce.py` run parts
and keep their results, `report` writes the page, `datasets` holds data.
"""
