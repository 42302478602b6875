"""Two fair coins were thrown, and somebody saw that they were not both heads: how likely is it that the first was heads."""

import heliograph as hg

model = hg.Model()
first, second = model.bernoulli("first", 0.5), model.bernoulli("second", 0.5)
model.constrain(~(first & second))
posterior = model.infer()

if __name__ == "__main__":
    print(posterior.summary())
