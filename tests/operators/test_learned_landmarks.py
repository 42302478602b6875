"""The default operator past the labels of an exact process: landmarks and nearest labels, no less honest."""

import json

import numpy as np
import pytest

from heliograph.errors import FileFormatError, ModelError
from heliograph.families import Gaussian
from heliograph.operators.learned import Learned
from heliograph.operators.learned.decide import SEEN
from heliograph.operators.protocol import Setting
from heliograph.oracles import sampler_of
from heliograph.oracles.answer import Answer
from heliograph.regression.growing_process import GrowingProcess
from heliograph.regression.landmarks import Landmarks

PLATE = 150


def wavy(x):
    return np.stack([np.sin(3 * x[:, 0]) * x[:, 1], np.cos(2 * x[:, 0] * x[:, 1])], axis=1)


def grown(n, landmarks, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    known = GrowingProcess(2, 2, 20, landmarks)
    known.use()
    x = rng.uniform(-2, 2, (n, 2))
    y = wavy(x) + np.sqrt(noise) * rng.normal(size=(n, 2))
    for k in range(0, n, 25):
        part = slice(k, k + 25)
        known.append(x[part], y[part], np.full((len(y[part]), 2), noise))
    return known, x


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_what_it_says_of_its_errors_is_as_honest_as_the_exact_process(noise):
    at = np.random.default_rng(9).uniform(-2, 2, (1000, 2))
    ratios = []
    for landmarks in (60, 1000):
        known, _ = grown(450, landmarks, noise)
        assert isinstance(known.fitted, Landmarks) == (landmarks == 60)
        mean, variance, _ = known.predict(at)
        ratios.append(((mean - wavy(at)) ** 2 / variance).mean())
    assert ratios[0] < 1.3 * max(ratios[1], 1.0)  # realised over claimed variance: 1 is honest


def test_more_labels_go_on_helping():
    # a place at a time: with 60 landmarks alone the error would stay where it is
    at = np.random.default_rng(9).uniform(-2, 2, (500, 2))
    variances = []
    for n in (150, 300, 900):
        known, _ = grown(n, 60)
        variances.append(np.median(known.predict(at)[1]))
    assert variances[2] < 0.5 * variances[1] < 0.5 * variances[0]


def test_what_a_prediction_costs_does_not_grow_with_the_labels():
    small, x = grown(200, 60)
    large, _ = grown(1500, 60)
    for known in (small, large):
        known.predict(x[:5])
        assert len(known.fitted) <= 60  # the points of a prediction's one matrix product
    assert len(large) == 1500


def test_noisy_labels_at_few_places_need_few_landmarks():
    rng = np.random.default_rng(4)
    places = rng.uniform(-2, 2, (12, 2))
    known = GrowingProcess(2, 2, 20, 60)
    known.use()
    for _ in range(10):
        x = places[rng.integers(12, size=40)]
        y = wavy(x) + 0.3 * rng.normal(size=(40, 2))
        known.append(x, y, np.full((40, 2), 0.09))
    assert len(known) == 400 and len(known.fitted) <= 12
    mean, variance, _ = known.predict(places)
    # some 33 labels of variance 0.09 at each place
    assert ((mean - wavy(places)) ** 2).mean() < 3 * 0.09 / 33 and variance.max() < 0.09 / 10


def test_a_row_near_a_label_is_seen_though_no_landmark_is_near():
    known, x = grown(600, 30)
    far = np.full((3, 2), 40.0) + np.arange(3)[:, None]
    assert not known.unseen(x, SEEN).any()
    assert known.unseen(far, SEEN).all()
    assert len(known.spread(far, SEEN, 3)) == 3


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_its_state_comes_back_and_nonsense_is_refused(noise):
    known, x = grown(300, 60, noise)
    known.append(x[:7] + 0.003, wavy(x[:7]), np.full((7, 2), noise))
    arrays = known.state()
    again = GrowingProcess.from_state(arrays, 20, 60)
    assert isinstance(again.fitted, Landmarks) and len(again.fitted) == len(known.fitted)
    for a, b in zip(known.predict(x), again.predict(x), strict=True):
        assert np.allclose(a, b, rtol=1e-6, atol=1e-8)  # rotated in another order
    for name, wrong in {
        "chosen": arrays["chosen"] + len(known),
        "left": arrays["left"][:-1],
    }.items():
        with pytest.raises(FileFormatError):
            GrowingProcess.from_state({**arrays, name: wrong}, 20, 60)
    with pytest.raises(FileFormatError):
        GrowingProcess.from_state({**arrays, "chosen": np.zeros_like(arrays["chosen"])}, 20, 60)
    with pytest.raises(FileFormatError):
        GrowingProcess.from_state({**arrays, "left": -1 - arrays["left"]}, 20, 60)


def test_leave_one_out_works_with_landmarks():
    known, _ = grown(300, 60, 0.01)
    residual, variance = known.leave_one_out()
    assert residual.shape == variance.shape == (300, 2)
    assert 0.3 < (residual**2 / variance).mean() < 1.5


# ---- the operator on a product of broad Gaussians, which has no end of labels ----------------------------------------


def stream(rng, n, shift=0.0, spread=1.0):
    ma, mb = shift + rng.uniform(0, 2, n), rng.uniform(0, 2, n)
    va = spread * np.exp(rng.uniform(-3, -1, n))
    b = mb + 0.3 * rng.normal(size=n)
    out = (ma + np.sqrt(va) * rng.normal(size=n)) * b + 0.7 * rng.normal(size=n)
    return {"a": Gaussian(ma, va), "b": Gaussian(mb, np.full(n, 0.09)), "out": Gaussian(out, np.full(n, 0.5))}


def exact(incoming):
    """The belief of a by a grid: given a, the rest is Gaussian."""
    (ma, va), (mb, vb), (mo, vo) = ((m.mean[:, None], m.variance[:, None]) for m in incoming.values())
    a = ma + np.sqrt(va) * np.linspace(-8, 8, 401)
    v = a**2 * vb + vo
    log_w = -0.5 * (a - ma) ** 2 / va - 0.5 * (mo - a * mb) ** 2 / v - 0.5 * np.log(v)
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    w /= w.sum(axis=1, keepdims=True)
    mean = (w * a).sum(axis=1)
    return Gaussian(mean, (w * (a - mean[:, None]) ** 2).sum(axis=1))


def ask(incoming, precision=None):
    belief = exact(incoming)
    zero, square = np.zeros(len(belief)), {"a": np.zeros((len(belief), 2, 2))}
    moments = {"a": (zero, zero)}
    return Answer({"a": belief}, zero, moments, square, square, {"a": zero}, zero, zero, zero, zero > 1, 0)


def run(operator, plates, tolerance, seed=0):
    """Expected and realised KL of what was accepted, and the share that was asked, plate by plate."""
    rng = np.random.default_rng(seed)
    setting = Setting(tolerance / PLATE**1.5, sampler_of(lambda a, b: a * b, Gaussian, name="product"), None, None)
    said, found, asked = [], [], []
    for shift, spread in plates:
        incoming = stream(rng, PLATE, shift, spread)
        reply = operator.send(rng, "a", incoming, ask, setting)
        kept = ~reply.asked
        said.append(reply.expected_kl[kept])
        found.append(exact(incoming).kl(reply.message * incoming["a"])[kept])
        asked.append(reply.asked.mean())
    return said, found, asked


@pytest.fixture(scope="module")
def runs():
    plates = [(0.0, 1.0)] * 16
    ways = {"landmarks": Learned(reference="none", landmarks=120), "exact": Learned(reference="none")}
    return {name: (operator, *run(operator, plates, 0.1)) for name, operator in ways.items()}


def test_an_operator_with_landmarks_is_no_less_honest(runs):
    worst = {}
    for name, (_, said, found, _) in runs.items():
        late_said, late_found = np.concatenate(said[6:]), np.concatenate(found[6:])
        worst[name] = late_found.sum() / late_said.sum(), np.mean(late_found > 4 * late_said)
    assert len(runs["landmarks"][0].kinds) == 1
    (directions,) = runs["landmarks"][0].kinds.values()
    assert isinstance(directions["a"].process.fitted, Landmarks)
    assert worst["landmarks"][0] < 1.3 * max(worst["exact"][0], 1.0)
    assert worst["landmarks"][1] < max(0.02, 1.5 * worst["exact"][1])


def test_asks_go_on_falling_past_the_number_of_landmarks(runs):
    operator, _, _, asked = runs["landmarks"]
    (directions,) = operator.kinds.values()
    assert len(directions["a"]) > 2 * 120
    assert np.mean(asked[-4:]) < 0.5 * np.mean(asked[1:4])


def test_after_a_shift_nothing_is_accepted_that_is_far_off(runs):
    operator = runs["landmarks"][0]
    _, found, asked = run(operator, [(5.0, 1.0), (0.0, 9.0), (5.0, 9.0), (-8.0, 1.0)], 0.1, seed=3)
    assert asked[0] > 0.5  # at once
    accepted = np.concatenate(found)
    # one message may have ten equal shares of half the tolerance
    assert (accepted <= 100 * 10 * 0.05 / PLATE).all()


def test_a_whole_operator_comes_back_with_its_landmarks(runs):
    operator = runs["landmarks"][0]
    arrays, header = operator.state()
    again = Learned(**json.loads(json.dumps(operator.settings)))
    again.restore(arrays, json.loads(json.dumps(header)))
    for (_, a), (_, b) in zip(operator.kinds.items(), again.kinds.items(), strict=True):
        x = a["a"].process.inputs[::7]
        for u, v in zip(a["a"].process.predict(x), b["a"].process.predict(x), strict=True):
            assert np.allclose(u, v, rtol=1e-5, atol=1e-7)


def test_fewer_landmarks_than_a_first_design_are_refused():
    with pytest.raises(ModelError, match="landmarks"):
        Learned(landmarks=10)
