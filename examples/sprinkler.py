"""The grass is wet: did it rain, or was it the sprinkler? A loop of four labels, summed over exactly."""

import heliograph as hg

model = hg.Model()
cloudy = model.bernoulli("cloudy", 0.5)
sprinkler = model.bernoulli("sprinkler", [0.5, 0.1], given=cloudy)
rain = model.bernoulli("rain", [0.2, 0.8], given=cloudy)
wet = model.bernoulli("wet", [[0.0, 0.9], [0.9, 0.99]], given=(sprinkler, rain), observed=1)
posterior = model.infer()

if __name__ == "__main__":
    print(posterior.summary())
