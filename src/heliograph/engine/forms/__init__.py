"""Forms of factors with one vector port in place of several scalar ones, for what is jointly Gaussian.

A run chooses them when it is compiled (`engine/blocks/joining.py`, `pairing.py`); no user makes one. Start with `choosing`;
`product`, `both_positive` and `conditioning` are the forms, and those of black boxes are in `factors/black_box/joint.py`.
"""
