"""Softmax regression: three kinds of iris from four measurements."""

import numpy as np
from sklearn.datasets import load_iris

import heliograph as hg


def data():
    x, y = load_iris(return_X_y=True)
    x = (x - x.mean(0)) / x.std(0)
    return {"x": np.column_stack([np.ones(len(x)), x]), "y": y.astype(float)}


def model(d):
    m = hg.Model()
    w = m.gaussian("w", np.zeros((3, 5)), covariance=np.eye(5))  # a vector for every kind
    m.categorical("y", logits=d["x"] @ w, observed=d["y"])
    return m


if __name__ == "__main__":
    print(model(data()).infer()["w"].mean)
