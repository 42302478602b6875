"""TrueSkill: skills of players from games between teams of two, with draws."""

import numpy as np

import heliograph as hg

PLAYERS, GAMES, MARGIN, NOISE = 10, 80, 0.8, 1.0


def data():
    rng = np.random.default_rng(14)
    skill = 2.0 * rng.standard_normal(PLAYERS)
    teams = np.array([rng.permutation(PLAYERS)[:4] for _ in range(GAMES)])
    gap = skill[teams[:, :2]].sum(1) - skill[teams[:, 2:]].sum(1) + 2 * NOISE * rng.standard_normal(GAMES)
    return {"teams": teams, "outcome": np.sign(np.where(np.abs(gap) < MARGIN, 0.0, gap))}


def model(d):
    m = hg.Model()
    skill = m.gaussian("skill", 0.0, sd=2.0, size=PLAYERS)
    gap = skill[d["teams"][:, :2]].sum(axis=1) - skill[d["teams"][:, 2:]].sum(axis=1)
    m.ordinal("outcome", gap / (2 * NOISE), np.array([-MARGIN, MARGIN]) / (2 * NOISE), observed=d["outcome"] + 1)
    return m


if __name__ == "__main__":
    print(model(data()).infer().summary())
