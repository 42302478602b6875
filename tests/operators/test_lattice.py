"""Predictions from a lattice: as good as those of the process, never where it was not checked, and cheaper."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.factors import Logistic
from heliograph.factors.black_box import RunOptions
from heliograph.families import Beta, Gamma, Gaussian
from heliograph.families.charts import chart_of
from heliograph.operators.learned.lattice import Lattice, Sample
from heliograph.operators.learned.records import Labels
from heliograph.operators.learned.spacing import lattice_for

N = 400


def black_box():
    @hg.factor(output=hg.Beta)
    def box(z):
        return 1 / (1 + np.exp(-z))

    return box


def plate(rng, n=N, shift=0.0, stretch=1.0):
    mean, variance = shift + 2.0 * rng.standard_normal(n), stretch * np.exp(0.5 * rng.standard_normal(n))
    label = rng.random(n) < 0.5
    return {"z": Gaussian(mean, variance), "out": Beta(np.where(label, 2.0, 1.0), np.where(label, 1.0, 2.0))}


def send(box, rng, incoming, tolerance=1e-5):
    n = len(incoming["z"])
    return box.send("z", incoming, RunOptions(rng, "learned", "quadrature", tolerance * n**1.5, None, n))


def settled(rng):
    """A factor that has asked all it will, with its lattice laid."""
    box = black_box()
    for _ in range(40):
        send(box, rng, plate(rng))
        shortcut = box.operator("learned").shortcuts.get("z")
        if shortcut is not None and shortcut.lattice is not None:
            return box, shortcut
    raise AssertionError("no lattice was laid in 40 plates")


def test_a_lattice_sends_what_the_process_would_have_sent():
    rng = np.random.default_rng(0)
    box, shortcut = settled(rng)
    for _ in range(3):
        incoming = plate(rng)
        reply = send(box, rng, incoming)
        del box.operator("learned").shortcuts["z"]
        without = send(box, rng, incoming)
        box.operator("learned").shortcuts["z"] = shortcut
        both = ~reply.asked & ~without.asked
        kl = (without.message * incoming["z"]).kl(reply.message * incoming["z"])[both]
        assert kl.max() <= 1e-5  # the tolerance; interpolation is allowed a fortieth of it at the centre of a cell
        assert np.quantile(kl, 0.9) <= 1e-6


def test_its_messages_are_within_the_tolerance_of_the_exact_ones():
    rng = np.random.default_rng(1)
    box, _ = settled(rng)
    for _ in range(5):
        incoming = plate(rng)
        reply = send(box, rng, incoming)
        exact = Logistic().belief("z", {"z": incoming["z"], "p": incoming["out"]})
        assert exact.kl(reply.message * incoming["z"]).max() < 1e-5


def test_plates_that_a_lattice_knows_cost_no_evaluation():
    rng = np.random.default_rng(2)
    box, _ = settled(rng)
    incoming = plate(rng)
    send(box, rng, incoming)
    before = box.n_evaluations
    reply = send(box, rng, incoming)
    assert box.n_evaluations == before
    assert not reply.asked.any()
    assert reply.log_variance is not None
    assert np.isfinite(reply.log_variance).all()
    assert (reply.expected_kl > 0).all()


def test_audits_go_on_in_a_long_run_although_a_lattice_is_in_use():
    rng = np.random.default_rng(12)
    box, shortcut = settled(rng)
    for _ in range(3):
        send(box, rng, plate(rng))
    before, n_trusted = shortcut.known.calibration.n_audits, shortcut.known.n_trusted
    assert n_trusted > 3000
    shortcut.known.n_trusted = 10**6
    for _ in range(10):
        send(box, rng, plate(rng))
    assert before < shortcut.known.calibration.n_audits <= before + 3


def test_the_same_seed_gives_the_same_bits_with_a_lattice_in_use():
    def run():
        rng = np.random.default_rng(3)
        box, _ = settled(rng)
        return [send(box, rng, plate(rng)).message.naturals[0] for _ in range(3)]

    assert all(np.array_equal(a, b) for a, b in zip(run(), run(), strict=True))


@pytest.mark.parametrize(("shift", "stretch"), [(20.0, 1.0), (0.0, 100.0), (-20.0, 100.0)])
def test_after_a_shift_messages_are_right_although_a_lattice_is_in_use(shift, stretch):
    rng = np.random.default_rng(4)
    box, _ = settled(rng)
    incoming = plate(rng, shift=shift, stretch=stretch)
    reply = send(box, rng, incoming)
    exact = Logistic().belief("z", {"z": incoming["z"], "p": incoming["out"]})
    assert exact.kl(reply.message * incoming["z"]).max() < 100 * 1e-5


def test_messages_of_another_class_are_not_taken_for_a_known_one():
    rng = np.random.default_rng(5)
    box, _ = settled(rng)
    incoming = plate(rng)
    other = {"z": incoming["z"], "out": Beta(np.full(N, 5.0), np.full(N, 3.0))}
    reply = send(box, rng, other)
    exact = Logistic().belief("z", {"z": other["z"], "p": other["out"]})
    assert exact.kl(reply.message * other["z"]).max() < 1e-5


def test_improper_and_foreign_rows_in_a_plate_go_the_long_way():
    rng = np.random.default_rng(6)
    box, _ = settled(rng)
    incoming = plate(rng)
    shift, precision = (a.copy() for a in incoming["z"].naturals)
    precision[:3] = -0.1
    reply = send(box, rng, {"z": Gaussian.from_naturals((shift, precision)), "out": incoming["out"]})
    assert reply.failed[:3].all() or reply.asked[:3].all()
    assert not reply.asked[3:].all()


def test_widths_chosen_anew_make_a_lattice_stale_and_a_label_alone_does_not():
    rng = np.random.default_rng(7)
    box, shortcut = settled(rng)
    known, process = shortcut.known, shortcut.known.process
    fitted = process.fitted
    known.append(Labels(process.inputs[:1] + 1e-3, process.targets[:1], process.noise[:1], known.own_kl[:1]))
    assert process.fitted is not fitted
    send(box, rng, plate(rng))
    assert box.operator("learned").shortcuts["z"] is shortcut
    assert shortcut.lattice.process is process.fitted
    process.refit()
    send(box, rng, plate(rng))
    assert box.operator("learned").shortcuts.get("z") is not shortcut


@pytest.mark.parametrize(
    "message",
    [
        Gaussian([0.3, -20.0], [2.0, 1e-4]),
        Gamma(np.array([0.4, 30.0]), np.array([1e-3, 50.0])),
        Beta(np.array([0.5, 90.0]), np.array([3.0, 0.7])),
    ],
)
def test_messages_are_made_of_their_features_again(message):
    chart = chart_of(message)
    again = chart.from_features(chart.features(message))
    for a, b in zip(again.naturals, message.naturals, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


# ---- a process of which everything is known --------------------------------------------------------------------------
def smooth(incoming):
    m, v = incoming["z"].mean, np.log(incoming["z"].variance)
    gap = np.stack([np.sin(m) * np.exp(0.3 * v), 0.2 * np.cos(m + v)], axis=1)
    return _sample(gap)


def stepped(incoming):
    m = incoming["z"].mean
    sample = smooth(incoming)
    return sample._replace(gap=sample.gap + np.where(m > 1.03, 0.5, 0.0)[:, None])


def unknown_beyond_one(incoming):
    return smooth(incoming)._replace(good=incoming["z"].mean < 1.0)


def _sample(gap):
    n = len(gap)
    return Sample(gap, np.full((n, 2), 0.5), np.full(n, 1e-7), np.full((n, 2), -10.0), np.ones(n, dtype=bool))


def lay(sampled, allowed=1e-8):
    rng = np.random.default_rng(8)
    incoming = plate(rng)
    lattice = lattice_for("z", chart_of(incoming["z"]), object(), allowed, incoming, sampled)
    assert lattice is not None
    return lattice, rng


def test_interpolation_is_as_fine_as_it_was_asked_to_be():
    for allowed in (1e-4, 1e-6, 1e-8):
        lattice, rng = lay(smooth, allowed)
        incoming = plate(rng)
        found, true = lattice.read(incoming, smooth), smooth(incoming)
        kl = (0.5 * (found.gap - true.gap) ** 2).sum(axis=1)[np.isfinite(found.kl)]
        assert len(kl) > 0.9 * N
        assert kl.max() <= 2 * allowed  # the centre of a cell is the worst place but for how curvature varies in it


def test_a_cell_with_a_step_in_it_is_never_used():
    lattice, rng = lay(smooth)
    incoming = plate(rng, 3000)
    found, true = lattice.read(incoming, stepped), stepped(incoming)
    used = np.isfinite(found.kl)
    assert not used[np.abs(incoming["z"].mean - 1.03) < 0.2 * lattice.spacing[0]].any()
    assert np.abs(found.gap - true.gap)[used].max() < 1e-3
    assert used.mean() > 0.5


def test_where_the_process_knows_nothing_neither_does_the_lattice():
    lattice, rng = lay(smooth)
    incoming = plate(rng, 3000)
    found = lattice.read(incoming, unknown_beyond_one)
    assert not np.isfinite(found.kl[incoming["z"].mean >= 1.0]).any()
    assert np.isfinite(found.kl[incoming["z"].mean < 0.0]).mean() > 0.9


def test_rows_far_beyond_all_nodes_are_left_to_the_process():
    lattice, rng = lay(smooth)
    lattice.read(plate(rng), smooth)
    incoming = plate(rng)
    far = {"z": Gaussian(np.where(np.arange(N) < 5, 1e7, incoming["z"].mean), incoming["z"].variance)}
    found = lattice.read(far | {"out": incoming["out"]}, smooth)
    assert np.isinf(found.kl[:5]).all()
    assert np.isfinite(found.kl[5:]).mean() > 0.9
    assert lattice.curves.nbytes < 2**26


def test_what_was_in_doubt_is_filled_again_by_a_process_that_knows_more():
    lattice, rng = lay(smooth)
    incoming = plate(rng)
    found = lattice.read(incoming, unknown_beyond_one)
    assert np.isinf(found.kl).any()
    lattice.renew(object(), 1e-6)
    asked = []

    def counted(made):
        asked.append(made["z"].mean)
        return smooth(made)

    again = lattice.read(incoming, counted)
    assert np.isfinite(again.kl).all()
    assert np.concatenate(asked).min() > 0.0  # only the doubtful part


def test_a_function_without_smooth_predictions_gets_no_lattice():
    rng = np.random.default_rng(9)
    incoming = plate(rng)

    def rough(made):
        return _sample(np.stack([np.sign(np.sin(1e4 * made["z"].mean)), made["z"].mean * 0], axis=1))

    assert lattice_for("z", chart_of(incoming["z"]), object(), 1e-8, incoming, rough) is None


def test_a_plate_that_varies_at_two_ports_gets_no_lattice():
    rng = np.random.default_rng(10)
    incoming = plate(rng) | {"out": Beta(1 + rng.random(N), 1 + rng.random(N))}
    assert lattice_for("z", chart_of(incoming["z"]), object(), 1e-6, incoming, smooth) is None


def test_new_classes_are_added_when_they_come_and_not_without_end():
    rng = np.random.default_rng(11)
    lattice, _ = lay(smooth)
    incoming = plate(rng)
    for k in range(100):
        lattice.read({"z": incoming["z"], "out": Beta(np.full(N, 2.0 + k), np.full(N, 1.0))}, smooth)
    assert len(lattice.columns) <= 64
    found = lattice.read({"z": incoming["z"], "out": Beta(np.full(N, 500.0), np.full(N, 1.0))}, smooth)
    assert np.isinf(found.kl).all()
    assert isinstance(lattice, Lattice)


def test_a_lone_outlier_is_left_to_the_process_until_it_has_come_often_and_then_fills_its_own_block():
    lattice, rng = lay(smooth)
    incoming = plate(rng)
    lattice.read(incoming, smooth)
    far = {"z": Gaussian(np.where(np.arange(N) == 7, 14.0, incoming["z"].mean), incoming["z"].variance)}
    made = []

    def counted(rows):
        made.append(len(rows["z"]))
        return smooth(rows)

    for _ in range(5):
        found = lattice.read(far | {"out": incoming["out"]}, counted)
        assert np.flatnonzero(np.isinf(found.kl)).tolist() == [7]
        assert np.isfinite(found.gap).all()  # a NaN of one row would reach the tolerance of all
    assert not made
    found = lattice.read(far | {"out": incoming["out"]}, counted)
    assert np.isfinite(found.kl).all()
    assert 0 < sum(made) <= 7 * 7 + 4 * 4  # the nodes of sixteen cells, and their centres; it was four hundred cells


def test_a_lone_outlier_costs_a_reference_and_the_rest_of_its_plate_nothing():
    rng = np.random.default_rng(14)
    box, shortcut = settled(rng)
    incoming = plate(rng)
    send(box, rng, incoming)
    mean = np.where(np.arange(N) == 7, 16.0, incoming["z"].mean)
    box.form_values.clear()  # what references remember of the function would save even that
    before, filled = box.n_evaluations, np.isfinite(shortcut.lattice.cells[..., 0]).sum()
    reply = send(box, rng, incoming | {"z": Gaussian(mean, incoming["z"].variance)})
    assert not reply.asked.any()
    assert 0 < box.n_evaluations - before <= 2000
    assert np.isfinite(shortcut.lattice.cells[..., 0]).sum() == filled


def test_plates_like_those_before_it_was_laid_fill_hardly_a_cell():
    lattice, rng = lay(smooth)
    lattice.fill(plate(rng, 2 * N), smooth, 3000)
    made = []

    def counted(rows):
        made.append(len(rows["z"]))
        return smooth(rows)

    for _ in range(5):
        assert (
            np.isfinite(lattice.read(plate(rng), counted).kl).mean() > 0.98
        )  # an outlier now and then is left to the process
    assert sum(made) <= 200
