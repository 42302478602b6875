"""Naive Bayes with unknown tables: two kinds of things, four of which have no label."""

import numpy as np

import heliograph as hg

label = np.array([0, 0, 0, 0, 1, 1, 1, np.nan, np.nan, np.nan, np.nan])
size = np.array([0, 0, 1, 0, 2, 2, 1, 0, 2, 1, 2])
colour = np.array([0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0])

model = hg.Model()
shares = model.dirichlet("shares", [1.0, 1.0])
kind = model.categorical("kind", shares, observed=label)
sizes, colours = model.dirichlet("sizes", np.ones((2, 3))), model.dirichlet("colours", np.ones((2, 2)))
model.categorical("size", sizes, given=kind, observed=size)
model.categorical("colour", colours, given=kind, observed=colour)
posterior = model.infer()

if __name__ == "__main__":
    print(posterior.summary())
