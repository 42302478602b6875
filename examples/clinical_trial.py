"""A clinical trial with a gate: whether the treatment does anything, and how much if it does."""

import heliograph as hg

PATIENTS, CURED = [49, 51], [20, 34]  # control, treated


def model():
    m = hg.Model()
    effective = m.bernoulli("effective", 0.5)
    with m.when(effective):
        rates = m.beta("rates", 1.0, 1.0, size=2)
        m.binomial("cured", PATIENTS, rates, observed=CURED)
    with m.when(~effective):
        rate = m.beta("rate", 1.0, 1.0)
        m.binomial("cured", PATIENTS, rate, observed=CURED)
    return m


if __name__ == "__main__":
    posterior = model().infer()
    print(posterior.summary())
    print("the treatment does something with probability", float(posterior["effective"].p))
    print("if so, the rates are", posterior["rates"].mean)
