"""TrueSkill through time: the skills of players wander from year to year, and only the results of games are seen."""

import numpy as np

import heliograph as hg

year = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
winner = np.array([0, 0, 1, 0, 1, 0, 1, 1, 2, 2, 1, 2])
loser = np.array([1, 2, 2, 1, 2, 2, 0, 2, 0, 0, 0, 1])

model = hg.Model()
skill = model.chain(
    "skill",
    4,
    hg.Gaussian(np.zeros(3), np.full(3, 2.0)),
    lambda before: model.gaussian("skill", before, variance=0.5),
)
model.bernoulli("won", probit=skill[year, winner] - skill[year, loser], observed=np.ones(len(year)))
posterior = model.infer()

if __name__ == "__main__":
    print(posterior.summary())
