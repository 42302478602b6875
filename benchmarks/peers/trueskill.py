"""TrueSkill by hand: one message per player and game, all games at once, factorised as in the published algorithm."""

import numpy as np
from scipy.special import log_ndtr


def factorised(winner, loser, n_players, mean, variance, noise, change=1e-6, most=200):
    """Means, variances and sweeps."""
    players = np.r_[winner, loser]
    n = len(winner)
    tau, nu = np.zeros(2 * n), np.zeros(2 * n)
    prior = 1 / variance
    total_tau, total_nu = np.full(n_players, prior), np.full(n_players, prior * mean)
    for sweep in range(1, most + 1):
        cavity_v = 1 / (total_tau[players] - tau)
        cavity_m = cavity_v * (total_nu[players] - nu)
        gap = cavity_m[:n] - cavity_m[n:]
        spread = cavity_v[:n] + cavity_v[n:] + 2 * noise
        z = gap / np.sqrt(spread)
        ratio = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
        pull, shrink = ratio / np.sqrt(spread), ratio * (ratio + z) / spread
        m = cavity_m + cavity_v * np.r_[pull, -pull]
        v = cavity_v - cavity_v**2 * np.r_[shrink, shrink]
        tau = 1 / v - 1 / cavity_v
        nu = m / v - cavity_m / cavity_v
        new_tau = prior + np.bincount(players, tau, n_players)
        new_nu = prior * mean + np.bincount(players, nu, n_players)
        ratio = total_tau / new_tau
        step = new_nu / new_tau - total_nu / total_tau
        moved = 0.5 * (ratio - 1 - np.log(ratio) + total_tau * step**2)
        total_tau, total_nu = new_tau, new_nu
        if moved.max() < change or sweep == most:
            break
    return total_nu / total_tau, 1 / total_tau, sweep
