"""Two fair coins were thrown, and somebody saw that not both are heads: the probability that the first one is."""

import heliograph as hg

model = hg.Model()
first, second = model.bernoulli("first", 0.5), model.bernoulli("second", 0.5)
model.constrain(~(first & second))
posterior = model.infer()

if __name__ == "__main__":
    print(posterior.summary())
