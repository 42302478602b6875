"""Examples of the reference for names whose docstrings have none; `make_reference.py` puts them on the page, the tests run them."""

SETUP = """
import numpy as np
import heliograph as hg
from heliograph import *

rng = np.random.default_rng(0)
model = hg.Model()
x = model.gaussian("x", 0.0, sd=1.0)
model.gaussian("seen", x, sd=1.0, observed=[0.5, 1.5])
posterior = model.infer()


@hg.factor(output=hg.Gaussian)
def cube(z):
    return z**3
"""

EXAMPLES = {
    # ---- the model
    "Model.attach": """
m = hg.Model()
z = m.gaussian("z", 0.0, sd=1.0)
m.attach(z, hg.Gaussian(2.0, 1.0))  # as if a measurement had said so
print(m.infer()[z])""",
    "Model.bernoulli": """
m = hg.Model()
z = m.gaussian("z", 0.0, sd=2.0)
m.bernoulli("label", logit=z, observed=[1, 1, 0])
print(m.infer()[z])""",
    "Model.beta": """
m = hg.Model()
p = m.beta("p", 1.0, 1.0)
m.bernoulli("heads", p, observed=[1, 0, 1])
print(m.infer()[p])""",
    "Model.between": """
m = hg.Model()
z = m.gaussian("z", 0.0, sd=1.0)
m.constrain(m.between(z, 0.5, 2.0))
print(m.infer()[z])""",
    "Model.binomial": """
m = hg.Model()
p = m.beta("p", 1.0, 1.0)
m.binomial("wins", 20, p, observed=13)
print(m.infer()[p])""",
    "Model.categorical": """
m = hg.Model()
p = m.dirichlet("p", [1.0, 1.0, 1.0])
m.categorical("colour", p, observed=[0, 2, 2])
print(m.infer()[p])""",
    "Model.chain": """
m = hg.Model()
level = m.chain("level", 20, start=hg.Gaussian(0.0, 1.0), step=lambda before: m.gaussian("level", before, sd=0.1))
m.gaussian("y", level, sd=0.5, observed=np.linspace(0.0, 1.0, 20))
print(m.infer()[level].mean[-1])""",
    "Model.constrain": """
m = hg.Model()
a, b = m.gaussian("a", 0.0, sd=1.0), m.gaussian("b", 0.0, sd=1.0)
m.constrain(a > b)
print(m.infer()[a])""",
    "Model.data": """
m = hg.Model()
t = m.data("t", [0.0, 1.0, 2.0])
slope = m.gaussian("slope", 0.0, sd=1.0)
m.gaussian("y", slope * t, sd=1.0, observed=[0.1, 0.9, 2.1])
m.observe(t=[0.0, 1.0], y=[0.5, 1.5])
print(m.infer()[slope])""",
    "Model.dirichlet": """
m = hg.Model()
p = m.dirichlet("p", [2.0, 1.0, 1.0])
print(m.infer()[p].mean)""",
    "Model.equal": """
m = hg.Model()
a, b = m.gaussian("a", 0.0, sd=1.0), m.gaussian("b", 1.0, sd=1.0)
m.equal(a, b)
print(m.infer()[a])""",
    "Model.exp": """
m = hg.Model()
rate = m.exp(m.gaussian("z", 0.0, sd=1.0))
m.poisson("count", rate, observed=[3])
print(m.infer()[rate])""",
    "Model.exponential": """
m = hg.Model()
rate = m.gamma("rate", 1.0, 1.0)
m.exponential("wait", rate, observed=[0.3, 1.2])
print(m.infer()[rate])""",
    "Model.flat": """
m = hg.Model()
rho = m.flat("rho", -1.0, 1.0)  # integrated over
a = m.gaussian("a", 0.0, sd=1.0)
m.gaussian("y", rho * a, sd=0.5, observed=0.4)
print(m.infer()[rho].mean)""",
    "Model.gamma": """
m = hg.Model()
precision = m.gamma("precision", 2.0, 1.0)
m.gaussian("y", 0.0, precision=precision, observed=[0.1, -0.4, 0.8])
print(m.infer()[precision])""",
    "Model.gaussian": """
m = hg.Model()
w = m.gaussian("w", np.zeros(2), covariance=np.eye(2))  # one vector
u = m.gaussian("u", 0.0, sd=1.0, size=3)  # three scalars
m.gaussian("y", np.ones((3, 2)) @ w + u, sd=0.5, observed=[1.0, 2.0, 3.0])
print(m.infer()[w])""",
    "Model.gp": """
m = hg.Model()
t = np.linspace(0.0, 5.0, 15)
length = m.log_normal("length", 0.0, 0.5)
f = m.gp("f", t, "rbf", length_scale=length, amplitude=1.0)
m.gaussian("y", f, sd=0.2, observed=np.sin(t))
print(m.infer()[length].mean)""",
    "Model.half_cauchy": """
m = hg.Model()
s = m.half_cauchy("s", 1.0)
m.gaussian("y", 0.0, sd=s, observed=[0.5, -1.0, 2.0])
print(m.infer()[s].mean)""",
    "Model.half_normal": """
m = hg.Model()
s = m.half_normal("s", 1.0)
m.gaussian("y", 0.0, sd=s, observed=[0.5, -1.0, 2.0])
print(m.infer()[s].interval(0.9))""",
    "Model.infer": """
print(model.infer(tolerance=1e-4, max_sweeps=50).status)""",
    "Model.laplace": """
m = hg.Model()
z = m.gaussian("z", 0.0, sd=5.0)
m.laplace("y", z, 0.5, observed=[1.0, 1.2, 1.6, 9.0])
print(m.infer()[z])""",
    "Model.lkj": """
m = hg.Model()
R = m.lkj("R", 2, 2.0)
u = m.gaussian("u", np.zeros(2), covariance=R)
m.gaussian("y", np.eye(2) @ u, sd=0.3, observed=[1.0, 0.9])
print(m.infer()[R].mean)""",
    "Model.wishart": """
m = hg.Model()
W = m.wishart("W", 4.0, np.eye(2) / 4.0)
m.gaussian("y", np.zeros(2), precision=W, observed=[[1.0, 0.8], [-1.2, -1.0], [0.3, 0.5]])
print(m.infer()[W].mean)""",
    "Model.log": """
m = hg.Model()
rate = m.gamma("rate", 2.0, 1.0)
m.gaussian("seen", m.log(rate), sd=0.1, observed=0.3)
print(m.infer()[rate])""",
    "Model.log_normal": """
m = hg.Model()
s = m.log_normal("s", 0.0, 0.5)
m.gaussian("y", 0.0, sd=s, observed=[0.5, -1.0, 2.0])
print(m.infer()[s].mean)""",
    "Model.maximum": """
m = hg.Model()
a, b = m.gaussian("a", 0.0, sd=1.0), m.gaussian("b", 0.0, sd=1.0)
m.gaussian("best", m.maximum(a, b), sd=0.1, observed=2.0)
print(m.infer()[a])""",
    "Model.minimum": """
m = hg.Model()
a, b = m.gaussian("a", 0.0, sd=1.0), m.gaussian("b", 0.0, sd=1.0)
m.gaussian("worst", m.minimum(a, b), sd=0.1, observed=-2.0)
print(m.infer()[a])""",
    "Model.mixture": """
m = hg.Model()
means = m.gaussian("means", [-2.0, 2.0], sd=1.0)
which = m.bernoulli("which", 0.5, size=4)
m.mixture("y", which, means, sd=0.5, observed=[-2.1, 1.8, 2.2, -1.9])
print(m.infer()[which].p.round(3))
rate = m.gamma("rate", 1.0, [1.0, 0.1])
m.mixture("count", which, lambda k: m.poisson("count", rate[k]), observed=[0, 9, 12, 1])
print(m.infer()[rate])""",
    "Model.multinomial": """
m = hg.Model()
p = m.dirichlet("p", [1.0, 1.0, 1.0])
m.multinomial("votes", p, observed=[5, 3, 2])
print(m.infer()[p])""",
    "Model.negative_binomial": """
m = hg.Model()
z = m.gaussian("z", 0.0, sd=2.0)
m.negative_binomial("count", log_mean=z, dispersion=2.0, observed=[3, 8, 1])
print(m.infer()[z])""",
    "Model.observe": """
m = hg.Model()
level = m.gaussian("level", 0.0, sd=1.0)
m.gaussian("y", level, sd=1.0, observed=[1.0, 2.0])
m.observe(y=[1.0, 2.0, 3.0])
print(m.infer()[level])""",
    "Model.ordinal": """
m = hg.Model()
z = m.gaussian("z", 0.0, sd=1.0)
m.ordinal("answer", z, [-1.0, 0.0, 1.0], observed=[3, 2])
print(m.infer()[z])""",
    "Model.plot": """
axes = model.plot()""",
    "Model.poisson": """
m = hg.Model()
rate = m.gamma("rate", 2.0, 1.0)
m.poisson("count", rate, observed=[3, 5, np.nan])
print(m.infer()[rate])""",
    "Model.select": """
m = hg.Model()
on = m.bernoulli("on", 0.5)
level = m.select(on, m.gaussian("high", 3.0, sd=1.0), 0.0)
m.gaussian("y", level, sd=0.5, observed=2.5)
print(m.infer()[on])""",
    "Model.sigmoid": """
m = hg.Model()
p = m.sigmoid(m.gaussian("z", 0.0, sd=1.0))
m.binomial("wins", 10, p, observed=7)
print(m.infer()[p])""",
    "Model.stack": """
m = hg.Model()
ab = m.gaussian("ab", 0.0, sd=1.0, size=2)
v = m.stack(ab)  # one vector of the two
m.gaussian("y", np.array([[1.0, 1.0]]) @ v, sd=0.1, observed=[1.0])
print(m.infer()[v].covariance)""",
    "Model.student_t": """
m = hg.Model()
z = m.gaussian("z", 0.0, sd=5.0)
m.student_t("y", z, 0.5, 4.0, observed=[1.0, 1.2, 9.0])
print(m.infer()[z])""",
    "Model.summary": """
print(model.summary())""",
    "Model.to_dot": """
print(model.to_dot()[:20])""",
    "Model.to_png": """
import shutil

if shutil.which("dot"):  # graphviz
    model.to_png("model.png")""",
    "Model.uniform": """
m = hg.Model()
z = m.uniform("z", 0.0, 10.0)
m.gaussian("y", z, sd=1.0, observed=[9.5, 9.9])
print(m.infer()[z])""",
    "Model.variable": """
m = hg.Model()
again = m.variable("x", posterior["x"])  # yesterday's posterior is today's prior
m.gaussian("seen", again, sd=1.0, observed=2.0)
print(m.infer()[again])""",
    "Model.variables": """
print(model.variables)""",
    "Model.weibull": """
m = hg.Model()
log_scale = m.gaussian("log_scale", 0.0, sd=1.0)
m.weibull("age", 1.5, log_scale=log_scale, observed=[1.0, 2.0], censored=[False, True])
print(m.infer()[log_scale])""",
    # ---- the posterior
    "Model.when": """
m = hg.Model()
fair = m.bernoulli("fair", 0.5)
with m.when(fair):
    m.bernoulli("heads", 0.5, observed=[1, 1, 0, 1, 1, 1])
with m.when(~fair):
    m.bernoulli("heads", m.beta("p", 1.0, 1.0), observed=[1, 1, 0, 1, 1, 1])
print(m.infer()[fair])""",
    "Posterior": """
print(posterior["x"], posterior.converged, posterior.log_evidence)""",
    "Posterior.as_prior": """
print(posterior.as_prior())""",
    "Posterior.compare": """
other = hg.Model()
other.gaussian("seen", 0.0, sd=1.5, observed=[0.5, 1.5])
print(posterior.compare(other.infer()))""",
    "Posterior.log_evidence": """
print(posterior.log_evidence)""",
    "Posterior.log_likelihood": """
print(posterior.log_likelihood(pointwise=True))""",
    "Posterior.n_sweeps": """
print(posterior.n_sweeps)""",
    "Posterior.plot": """
axes = posterior.plot()""",
    "Posterior.predict": """
print(posterior.predict("seen", draws=1000).interval(0.9))""",
    "Posterior.save": """
posterior.save("posterior.hg")""",
    "Posterior.structure": """
print(posterior.structure)""",
    "Posterior.summary": """
print(posterior.summary())""",
    "Posterior.table": """
print(posterior.table())""",
    "Posterior.unsent": """
print(len(posterior.unsent))""",
    "GatedPosterior": """
m = hg.Model()
fair = m.bernoulli("fair", 0.5)
with m.when(fair):
    m.bernoulli("heads", 0.5, observed=[1, 1, 0, 1, 1, 1])
with m.when(~fair):
    m.bernoulli("heads", m.beta("p", 1.0, 1.0), observed=[1, 1, 0, 1, 1, 1])
print(m.infer().branches)""",
    "IntegratedPosterior": """
m = hg.Model()
s = m.half_normal("s", 1.0)
m.gaussian("y", 0.0, sd=s, observed=[0.5, -1.0])
print(m.infer().integration)""",
    "SavedPosterior": """
posterior.save("posterior.hg")
print(hg.load_posterior("posterior.hg"))""",
    "load_posterior": """
posterior.save("posterior.hg")
print(hg.load_posterior("posterior.hg")["x"])""",
    "Comparison": """
print(hg.compare({"one": posterior, "same": model.infer()}).probability)""",
    # ---- variables
    "Variable.T": """
m = hg.Model()
print(m.gaussian("grid", 0.0, sd=1.0, size=(2, 3)).T.shape)""",
    "Variable.family": """
print(x.family)""",
    "Variable.mean": """
m = hg.Model()
u = m.gaussian("u", 0.0, sd=1.0, size=4)
print(m.infer()[u.mean()])""",
    "Variable.name": """
print(x.name)""",
    "Variable.ndim": """
print(x.ndim)""",
    "Variable.reshape": """
m = hg.Model()
print(m.gaussian("u", 0.0, sd=1.0, size=4).reshape(2, 2).shape)""",
    "Variable.size": """
print(x.size)""",
    "Variable.sum": """
m = hg.Model()
u = m.gaussian("u", 0.0, sd=1.0, size=4)
print(m.infer()[u.sum()])""",
    # ---- black boxes
    "BlackBox": """
m = hg.Model()
z = m.gaussian("z", 1.0, sd=0.5)
m.gaussian("y", cube(z), sd=0.1, observed=1.5)
print(m.infer()[z], cube.n_asked)""",
    "BlackBox.load": """
cube.save("cube.hg")
cube.load("cube.hg")""",
    "BlackBox.message": """
print(cube.message("z", {"z": hg.Gaussian([0.5], 1.0), "out": hg.Gaussian([1.0], 0.1)}))""",
    "BlackBox.plot": """
m = hg.Model()
z = m.gaussian("z", 1.0, sd=0.5, size=30)
m.gaussian("y", cube(z), sd=0.1, observed=np.linspace(0.5, 1.5, 30))
m.infer()
axes = cube.plot()""",
    "BlackBox.report": """
print(cube.report())""",
    "BlackBox.save": """
cube.save("cube.hg")""",
    "BlackBox.train": """
print(callable(cube.train))""",
    "load_factor": """
cube.save("cube.hg")
print(hg.load_factor("cube.hg", lambda z: z**3).name)""",
    # ---- families
    "Family": """
print(hg.Gaussian(0.0, 1.0) * hg.Gaussian(1.0, 1.0))  # any family""",
    "Family.entropy": """
print(hg.Gaussian(0.0, 1.0).entropy())""",
    "Family.kl": """
print(hg.Gaussian(0.0, 1.0).kl(hg.Gaussian(1.0, 1.0)))""",
    "Family.log_density": """
print(hg.Gamma(2.0, 1.0).log_density(0.5))""",
    "Family.mean": """
print(hg.Beta(2.0, 1.0).mean)""",
    "Family.plot": """
axes = hg.Gamma([2.0, 3.0], 1.0).plot()""",
    "Family.point_mass": """
print(hg.Gaussian.point_mass(1.0))""",
    "Family.proper": """
print((hg.Gaussian(0.0, 1.0) / hg.Gaussian(0.0, 0.5)).proper)""",
    "Family.reshape": """
print(hg.Gaussian(np.zeros(4), 1.0).reshape((2, 2)).shape)""",
    "Family.sample": """
print(hg.Gaussian(0.0, 1.0).sample(np.random.default_rng(0), 3))""",
    "Family.shape": """
print(hg.Gaussian(np.zeros(4), 1.0).shape)""",
    "Family.uniform": """
print(hg.Gaussian.uniform((2,)))""",
    "Family.variance": """
print(hg.Beta(2.0, 1.0).variance)""",
    "Symbol": """
m = hg.Model()
s = m.half_normal("s", 1.0)
m.gaussian("y", 0.0, variance=s**2 + 0.1, observed=[0.5, -1.0])  # ordinary arithmetic
print(m.infer()[s].mean)""",
    # ---- runs
    "after": """
print(model.infer(stop=hg.after(3)).n_sweeps)""",
    "after_seconds": """
print(model.infer(stop=hg.changed_less_than(1e-6) | hg.after_seconds(10)).converged)""",
    "changed_less_than": """
print(model.infer(stop=hg.changed_less_than(1e-8)).converged)""",
    "infer": """
print(hg.infer(model)["x"])""",
    "Step": """
for step in hg.steps(model):
    print(step.info.sweep, step.posterior["x"])""",
    "SweepInfo": """
for step in hg.steps(model):
    print(step.info.change, step.info.damping)""",
    "Trace": """
print(posterior.trace)""",
    # ---- errors and warnings
    "errors": """
print(issubclass(hg.errors.FileFormatError, hg.HeliographError))""",
    "HeliographError": """
try:
    hg.Gaussian(0.0, -1.0)
except hg.HeliographError as error:
    print(error)""",
    "ModelError": """
try:
    model.gaussian("x", 0.0, sd=1.0)
except hg.ModelError as error:
    print(error)""",
    "UnsupportedError": """
try:
    hg.Categorical([0.5, 0.5]).quantile(0.5)
except hg.UnsupportedError as error:
    print(error)""",
    "ContradictionError": """
m = hg.Model()
a = m.gaussian("a", 0.0, sd=1.0)
m.constrain(a > 2.0)
try:
    m.constrain(a < 1.0)
except hg.ContradictionError as error:
    print(error)""",
    "AccuracyWarning": """
print(issubclass(hg.AccuracyWarning, Warning))""",
    "ConvergenceWarning": """
print(issubclass(hg.ConvergenceWarning, Warning))""",
    "OracleWarning": """
print(issubclass(hg.OracleWarning, Warning))""",
}
