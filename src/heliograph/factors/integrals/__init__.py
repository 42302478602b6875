"""Tilted distributions: the integrals that factors without a closed form are made of.

Start with `tilt`: a Gaussian cavity times a factor, and the message that follows. `exponential` and `logistic` are tilts of
one factor each, `label` a fast way for many observed labels. Where the tilted distribution is a mixture of Gaussians over
a latent number, `mixing` carries its parts relative to the cavity; `precision` and `product` integrate over that number.
The quadratures themselves are in `numerics`.
"""
