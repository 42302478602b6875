"""The learners of earlier papers: Eslami et al. (2014), Heess et al. (2013), and scikit-learn's forests.

`eslami2014.py` (with `leaves.py`), `heess2013.py` and `forests.py` are regressions; `forest.py` and `neural.py` make operators
of the first two, by way of `summaries.py` (messages as rows of numbers) and `Agreement` (trees that differ, in nats).
"""
