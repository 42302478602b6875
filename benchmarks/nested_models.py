"""Twelve models with hyper-parameters, each written twice: for heliograph and for NumPyro."""

import numpy as np

import heliograph as hg

EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def _ours():
    return hg.Model()


def _theirs():
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    return numpyro, dist, jnp


# ---- the eight of the list ------------------------------------------------------------------------------------------
def schools(rng):
    """Eight schools."""

    def ours():
        m = _ours()
        tau = m.half_cauchy("tau", 5.0)
        x = m.gaussian("x", m.gaussian("mu", 0.0, sd=5.0), sd=tau, size=8)
        m.gaussian("y", x, sd=ERROR, observed=EFFECT)
        return m

    def theirs():
        numpyro, dist, _ = _theirs()
        mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
        e = numpyro.sample("e", dist.Normal(0, 1).expand([8]))
        x = numpyro.deterministic("x", mu + tau * e)
        numpyro.sample("y", dist.Normal(x, ERROR), obs=EFFECT)

    return ours, theirs, ["mu", "x"], ["tau"]


def poisson_effects(rng, n=40):
    """Counts with a random effect each."""
    count = rng.poisson(np.exp(0.5 + 0.7 * rng.normal(size=n)))

    def ours():
        m = _ours()
        z = m.gaussian("z", m.gaussian("mu", 0.0, sd=5.0), sd=m.half_normal("tau", 1.0), size=n)
        m.poisson("count", log_rate=z, observed=count)
        return m

    def theirs():
        numpyro, dist, jnp = _theirs()
        mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfNormal(1))
        z = numpyro.deterministic("z", mu + tau * numpyro.sample("e", dist.Normal(0, 1).expand([n])))
        numpyro.sample("count", dist.Poisson(jnp.exp(z)), obs=count)

    return ours, theirs, ["mu", "z"], ["tau"]


def robust(rng, n=100, d=3):
    """Regression with Student noise of unknown scale and degrees of freedom."""
    X = np.c_[np.ones(n), rng.normal(size=(n, d - 1))]
    y = X @ [1.0, -0.5, 0.8] + 0.5 * rng.standard_t(4, n)

    def ours():
        m = _ours()
        s, nu = m.half_normal("s", 2.0), m.log_normal("nu", np.log(8.0), 0.8)
        w = m.gaussian("w", 0.0, sd=5.0, size=d)
        m.student_t("y", X @ w, scale=s, dof=nu, observed=y)
        return m

    def theirs():
        numpyro, dist, _ = _theirs()
        s, nu = numpyro.sample("s", dist.HalfNormal(2)), numpyro.sample("nu", dist.LogNormal(np.log(8.0), 0.8))
        w = numpyro.sample("w", dist.Normal(0, 5).expand([d]))
        numpyro.sample("y", dist.StudentT(nu, X @ w, s), obs=y)

    return ours, theirs, ["w"], ["s", "nu"]


def mixed_logistic(rng, groups=100, per=10):
    """Labels in groups, each with an intercept and a slope of its own, which are correlated."""
    g, x = np.repeat(np.arange(groups), per), rng.normal(size=groups * per)
    effect = rng.normal(size=(groups, 2)) @ np.linalg.cholesky([[1.0, 0.3], [0.3, 0.5]]).T + [0.3, -0.5]
    y = (rng.random(len(x)) < 1 / (1 + np.exp(-effect[g, 0] - effect[g, 1] * x))).astype(float)

    def ours():
        m = _ours()
        s, rho = m.half_normal("s", 1.0, size=2), m.lkj("R", 2, 2.0)[0, 1]
        mu = m.gaussian("mu", 0.0, sd=3.0, size=2)
        u, v = m.gaussian("u", 0.0, sd=1.0, size=groups), m.gaussian("v", 0.0, sd=1.0, size=groups)
        slope = s[1] * rho * u + s[1] * np.sqrt(1 - rho**2) * v
        m.bernoulli("y", logit=mu[0] + mu[1] * x + (s[0] * u)[g] + slope[g] * x, observed=y)
        return m

    def theirs():
        numpyro, dist, _ = _theirs()
        s = numpyro.sample("s", dist.HalfNormal(1).expand([2]))
        root = numpyro.sample("L", dist.LKJCholesky(2, 2.0))
        numpyro.deterministic("R", root @ root.T)
        mu = numpyro.sample("mu", dist.Normal(0, 3).expand([2]))
        u, v = (numpyro.sample(k, dist.Normal(0, 1).expand([groups])) for k in "uv")
        slope = s[1] * (root[1, 0] * u + root[1, 1] * v)
        numpyro.sample("y", dist.Bernoulli(logits=mu[0] + mu[1] * x + s[0] * u[g] + slope[g] * x), obs=y)

    return ours, theirs, ["mu", "u", "v"], ["s", "R"]


def volatility(rng, n=500):
    """Stochastic volatility: the log variance is an autoregression."""
    h = np.zeros(n)
    h[0] = rng.normal() * 0.25 / np.sqrt(1 - 0.95**2)
    for t in range(1, n):
        h[t] = 0.95 * h[t - 1] + 0.25 * rng.normal()
    y = np.exp(0.5 * (h - 1.0)) * rng.normal(size=n)

    def ours():
        m = _ours()
        phi, s = m.flat("phi", 0.0, 1.0), m.half_normal("s", 0.5)
        mu = m.gaussian("mu", 0.0, sd=3.0)
        x = m.chain(
            "x",
            n,
            lambda: m.gaussian("x", 0.0, sd=s / np.sqrt(1 - phi**2)),
            lambda before: m.gaussian("x", phi * before, sd=s),
        )
        m.gaussian("y", 0.0, precision=m.exp(-mu - x), observed=y)
        return m

    def theirs():
        numpyro, dist, jnp = _theirs()
        from jax import lax

        phi, s = numpyro.sample("phi", dist.Uniform(0, 1)), numpyro.sample("s", dist.HalfNormal(0.5))
        mu = numpyro.sample("mu", dist.Normal(0, 3))
        e = numpyro.sample("e", dist.Normal(0, 1).expand([n]))
        first = s / jnp.sqrt(1 - phi**2) * e[0]
        _, rest = lax.scan(lambda a, b: (phi * a + s * b, phi * a + s * b), first, e[1:])
        x = numpyro.deterministic("x", jnp.concatenate([first[None], rest]))
        numpyro.sample("y", dist.Normal(0, jnp.exp(0.5 * (mu + x))), obs=y)

    return ours, theirs, ["mu", "x"], ["phi", "s"]


def gp_labels(rng, n=100):
    """Labels of a Gaussian process with unknown length scale and amplitude."""
    X = rng.uniform(-2, 2, (n, 2))
    y = (rng.random(n) < 1 / (1 + np.exp(-3 * np.sin(2 * X[:, 0]) - X[:, 1]))).astype(float)

    def ours():
        m = _ours()
        f = m.gp("f", X, length_scale=m.log_normal("length", 0.0, 0.7), amplitude=m.half_normal("amplitude", 3.0))
        m.bernoulli("y", logit=f, observed=y)
        return m

    gaps = ((X[:, None] - X[None]) ** 2).sum(-1)

    def theirs():
        numpyro, dist, jnp = _theirs()
        length, a = numpyro.sample("length", dist.LogNormal(0, 0.7)), numpyro.sample("amplitude", dist.HalfNormal(3))
        root = jnp.linalg.cholesky(jnp.exp(-0.5 * gaps / length**2) + 1e-6 * jnp.eye(n))
        f = numpyro.deterministic("f", a * root @ numpyro.sample("e", dist.Normal(0, 1).expand([n])))
        numpyro.sample("y", dist.Bernoulli(logits=f), obs=y)

    return ours, theirs, ["f"], ["length", "amplitude"]


def spatial(rng, side=20):
    """Counts on a grid whose log rates are a Gaussian Markov field of unknown scale."""
    n = side * side
    index = np.arange(n).reshape(side, side)
    edges = np.r_[np.c_[index[:, 1:].ravel(), index[:, :-1].ravel()], np.c_[index[1:].ravel(), index[:-1].ravel()]]
    steps = np.zeros((len(edges), n))
    steps[np.arange(len(edges)), edges[:, 0]], steps[np.arange(len(edges)), edges[:, 1]] = 1.0, -1.0
    shape = np.linalg.inv(steps.T @ steps + 0.05 * np.eye(n))
    root = np.linalg.cholesky(shape)
    count = rng.poisson(np.exp(1.0 + 0.6 * root @ rng.normal(size=n)))

    def ours():
        m = _ours()
        s, mu = m.half_normal("s", 1.0), m.gaussian("mu", 0.0, sd=3.0)
        x = m.gaussian("x", np.zeros(n), covariance=s**2 * shape)
        m.poisson("count", log_rate=mu + x[:], observed=count)
        return m

    def theirs():
        numpyro, dist, jnp = _theirs()
        s, mu = numpyro.sample("s", dist.HalfNormal(1)), numpyro.sample("mu", dist.Normal(0, 3))
        x = numpyro.deterministic("x", s * root @ numpyro.sample("e", dist.Normal(0, 1).expand([n])))
        numpyro.sample("count", dist.Poisson(jnp.exp(mu + x)), obs=count)

    return ours, theirs, ["mu", "x"], ["s"]


def crossed(rng, n=400):
    """Crossed random effects with five variances."""
    sizes = (10, 12, 8, 15)
    index = [rng.integers(0, k, n) for k in sizes]
    y = 0.5 + 0.7 * rng.normal(size=n)
    y = y + sum(s * rng.normal(size=k)[i] for s, k, i in zip((1.0, 0.5, 0.8, 0.3), sizes, index, strict=True))

    def ours():
        m = _ours()
        total = m.gaussian("mu", 0.0, sd=5.0)
        for j, (k, i) in enumerate(zip(sizes, index, strict=True)):
            total = total + m.gaussian(f"x{j}", 0.0, sd=m.half_normal(f"s{j}", 1.0), size=k)[i]
        m.gaussian("y", total, sd=m.half_normal("noise", 1.0), observed=y)
        return m

    def theirs():
        numpyro, dist, _ = _theirs()
        total = numpyro.sample("mu", dist.Normal(0, 5))
        for j, (k, i) in enumerate(zip(sizes, index, strict=True)):
            s = numpyro.sample(f"s{j}", dist.HalfNormal(1))
            e = numpyro.sample(f"e{j}", dist.Normal(0, 1).expand([k]))
            total = total + numpyro.deterministic(f"x{j}", s * e)[i]
        numpyro.sample("y", dist.Normal(total, numpyro.sample("noise", dist.HalfNormal(1))), obs=y)

    return ours, theirs, ["mu", "x0", "x1", "x2", "x3"], ["s0", "s1", "s2", "s3", "noise"]


# ---- four more, run once after the settings were fixed --------------------------------------------------------------
def gp_regression(rng, n=80):
    """Matern process with unknown length scale, amplitude and noise."""
    x = np.sort(rng.uniform(0, 10, n))
    y = np.sin(x) + 0.3 * rng.normal(size=n)

    def ours():
        m = _ours()
        length, a = m.log_normal("length", 0.0, 1.0), m.half_normal("amplitude", 2.0)
        f = m.gp("f", x, "matern32", length_scale=length, amplitude=a)
        m.gaussian("y", f, sd=m.half_normal("noise", 1.0), observed=y)
        return m

    gaps = np.abs(x[:, None] - x[None])

    def theirs():
        import jax

        numpyro, dist, jnp = _theirs()
        length, a = numpyro.sample("length", dist.LogNormal(0, 1)), numpyro.sample("amplitude", dist.HalfNormal(2))
        r = np.sqrt(3.0) * gaps / length
        shape = a**2 * ((1 + r) * jnp.exp(-r) + 1e-6 * jnp.eye(n))
        noise = numpyro.sample("noise", dist.HalfNormal(1))
        # f is integrated out, and drawn of what is left of it: as a latent variable it keeps NUTS from ending in 20 minutes
        root = jnp.linalg.cholesky(shape + noise**2 * jnp.eye(n))
        numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(n), scale_tril=root), obs=y)
        inside = jax.scipy.linalg.solve_triangular(root, shape, lower=True)
        left = jnp.linalg.cholesky(shape - inside.T @ inside + 1e-9 * jnp.eye(n))
        middle = inside.T @ jax.scipy.linalg.solve_triangular(root, y, lower=True)
        numpyro.deterministic("f", middle + left @ numpyro.sample("e", dist.Normal(0, 1).expand([n])))

    return ours, theirs, ["f"], ["length", "amplitude", "noise"]


def nested_counts(rng, schools_=12, classes=4, per=3):
    """Counts in classes in schools: two levels of random effects."""
    n = schools_ * classes * per
    school, room = np.arange(n) // (classes * per), np.arange(n) // per
    rate = 0.8 + 0.5 * rng.normal(size=schools_)[school] + 0.3 * rng.normal(size=schools_ * classes)[room]
    count = rng.poisson(np.exp(rate))

    def ours():
        m = _ours()
        mu = m.gaussian("mu", 0.0, sd=3.0)
        a = m.gaussian("a", 0.0, sd=m.half_normal("s_school", 1.0), size=schools_)
        b = m.gaussian("b", 0.0, sd=m.half_normal("s_class", 1.0), size=schools_ * classes)
        m.poisson("count", log_rate=mu + a[school] + b[room], observed=count)
        return m

    def theirs():
        numpyro, dist, jnp = _theirs()
        mu = numpyro.sample("mu", dist.Normal(0, 3))
        s, t = numpyro.sample("s_school", dist.HalfNormal(1)), numpyro.sample("s_class", dist.HalfNormal(1))
        a = numpyro.deterministic("a", s * numpyro.sample("ea", dist.Normal(0, 1).expand([schools_])))
        b = numpyro.deterministic("b", t * numpyro.sample("eb", dist.Normal(0, 1).expand([schools_ * classes])))
        numpyro.sample("count", dist.Poisson(jnp.exp(mu + a[school] + b[room])), obs=count)

    return ours, theirs, ["mu", "a", "b"], ["s_school", "s_class"]


def shrinkage(rng, n=200, d=15):
    """Logistic regression whose coefficients share a scale with a heavy-tailed prior."""
    X = rng.normal(size=(n, d))
    w = np.r_[rng.normal(size=5), np.zeros(d - 5)]
    y = (rng.random(n) < 1 / (1 + np.exp(-X @ w))).astype(float)

    def ours():
        m = _ours()
        w = m.gaussian("w", 0.0, sd=m.half_cauchy("s", 1.0), size=d)
        m.bernoulli("y", logit=X @ w, observed=y)
        return m

    def theirs():
        numpyro, dist, _ = _theirs()
        s = numpyro.sample("s", dist.HalfCauchy(1))
        w = numpyro.deterministic("w", s * numpyro.sample("e", dist.Normal(0, 1).expand([d])))
        numpyro.sample("y", dist.Bernoulli(logits=X @ w), obs=y)

    return ours, theirs, ["w"], ["s"]


def local_level(rng, n=120):
    """A random walk seen with noise, both scales unknown."""
    y = np.cumsum(0.3 * rng.normal(size=n)) + 0.5 * rng.normal(size=n)

    def ours():
        m = _ours()
        s, noise = m.half_normal("s", 1.0), m.half_normal("noise", 1.0)
        x = m.chain("x", n, hg.Gaussian(0.0, 4.0), lambda before: m.gaussian("x", before, sd=s))
        m.gaussian("y", x, sd=noise, observed=y)
        return m

    def theirs():
        numpyro, dist, jnp = _theirs()
        s, noise = numpyro.sample("s", dist.HalfNormal(1)), numpyro.sample("noise", dist.HalfNormal(1))
        e = numpyro.sample("e", dist.Normal(0, 1).expand([n]))
        x = numpyro.deterministic("x", jnp.cumsum(jnp.concatenate([2.0 * e[:1], s * e[1:]])))
        numpyro.sample("y", dist.Normal(x, noise), obs=y)

    return ours, theirs, ["x"], ["s", "noise"]


LISTED = (schools, poisson_effects, robust, mixed_logistic, volatility, gp_labels, spatial, crossed)
OWN = (gp_regression, nested_counts, shrinkage, local_level)
