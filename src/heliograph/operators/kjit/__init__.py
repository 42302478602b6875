"""The paper's operator, learned just in time with random features: start reading at `just_in_time.py`.

`just_in_time.py` is the loop (section 3.3 of the paper), `kernel_learner.py` the paper's regression and `Kjit`, `targets.py` what
is learned, `directions.py` what is known and how it is kept. The loop also serves the forest of `paper/rivals/forest.py`.
"""
