"""Two coins, of which we know that not both came up heads."""

import heliograph as hg


def model():
    m = hg.Model()
    first, second = m.bernoulli("first", 0.5), m.bernoulli("second", 0.5)
    table = [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]  # both, given each
    m.categorical("both", table, given=[first, second], observed=0)
    return m


if __name__ == "__main__":
    posterior = model().infer()
    print("the first came up heads with probability", posterior["first"].p)
