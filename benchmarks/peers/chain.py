"""A random walk seen in noise: a Kalman filter and Rauch-Tung-Striebel smoother as a plain loop."""

import numpy as np


def smoother(y, first_variance, drift, noise):
    """Means and variances of every state."""
    n = len(y)
    m, v = [0.0] * n, [0.0] * n
    ahead_m, ahead_v = 0.0, first_variance
    for t, seen in enumerate(y.tolist()):
        gain = ahead_v / (ahead_v + noise)
        m[t] = ahead_m = ahead_m + gain * (seen - ahead_m)
        v[t] = ahead_v = (1 - gain) * ahead_v
        ahead_v += drift
    for t in range(n - 2, -1, -1):
        back = v[t] / (v[t] + drift)
        m[t] += back * (m[t + 1] - m[t])
        v[t] += back * back * (v[t + 1] - v[t] - drift)
    return np.array(m), np.array(v)
