"""ID3 and C4.5: the worked tables, thresholds, missing values, costs, pruning."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from groundstate import C45Classifier, ID3Classifier
from groundstate.learn.solvers.trees.branching import upper_limit
from groundstate.math.info import entropy, gain_ratio, information_gain

RNG = np.random.default_rng(0)
COVID = {"YYYY": 2, "YYNN": 2, "YYNY": 1, "YNYY": 3, "NNNN": 1, "NYNN": 2, "NYYY": 2, "NYYN": 1}
ROWS = np.array([list(row[:3]) for row, n in COVID.items() for _ in range(n)])
SICK = np.array([row[3] for row, n in COVID.items() for _ in range(n)])


def test_covid_table() -> None:
    """Fever, cough, breathing: the root asks for breathing, then for fever."""
    assert entropy([8, 6], base=2) == pytest.approx(0.985228, abs=1e-6)
    gains = [information_gain(SICK, ROWS[:, j]) for j in range(3)]
    np.testing.assert_allclose(gains, [0.128085, 0.039149, 0.396039], atol=1e-6)
    ratios = [gain_ratio(SICK, ROWS[:, j]) for j in range(3)]
    np.testing.assert_allclose(ratios, [0.130006, 0.045357, 0.401977], atol=1e-6)
    for answer, gain in (("Y", 0.199204), ("N", 0.190875)):
        part = ROWS[:, 2] == answer
        assert information_gain(SICK[part], ROWS[part, 0]) == pytest.approx(gain, abs=1e-6)
    frame = pd.DataFrame(ROWS, columns=["fever", "cough", "breathing"])
    model = ID3Classifier().fit(frame, SICK)
    assert model.export_text().splitlines()[0] == "|--- breathing = N"
    asked = pd.DataFrame({"fever": list("YNYN"), "cough": list("YYYY"), "breathing": list("YYNN")})
    assert model.predict(asked).tolist() == ["Y", "Y", "N", "N"]


def test_unseen_value_gets_the_shares_of_its_node() -> None:
    model = ID3Classifier().fit(ROWS, SICK)
    p = model.predict_proba(np.array([["Y", "Y", "perhaps"]]))
    np.testing.assert_allclose(p, [[6 / 14, 8 / 14]])


def test_gain_ratio_resists_a_column_of_names() -> None:
    """200 rows, a column of names and 10 % noise: gain takes the names, the ratio the cause."""
    cause = RNG.integers(0, 2, 200)
    y = np.where(RNG.random(200) < 0.1, 1 - cause, cause)
    table = np.column_stack([np.arange(200), cause])
    assert information_gain(y, table[:, 0]) > information_gain(y, table[:, 1])
    assert gain_ratio(y, table[:, 1]) > 3 * gain_ratio(y, table[:, 0])
    frame = pd.DataFrame(table.astype(str), columns=["name", "cause"])
    assert ID3Classifier().fit(frame, y).export_text().startswith("|--- name")


def test_a_column_of_names_leads_less_by_ratio() -> None:
    """Fourteen days of tennis: names beat the outlook 3.81-fold by gain, 1.58-fold by ratio."""
    days = "shhwn shhsn ohhwy rmhwy rcnwy rcnsn ocnsy smhwn scnwy rmnwy smnsy omhsy ohnwy rmhsn"
    table = np.array([list(day) for day in days.split()])
    names, outlook, play = np.arange(14), table[:, 0], table[:, 4]
    by_gain = information_gain(play, names) / information_gain(play, outlook)
    by_ratio = gain_ratio(play, names) / gain_ratio(play, outlook)
    assert by_gain == pytest.approx(3.81, abs=0.01) and by_ratio == pytest.approx(1.58, abs=0.01)
    frame = pd.DataFrame(table[:, :4], columns=["outlook", "temperature", "humidity", "wind"])
    model = ID3Classifier().fit(frame, play)
    assert model.export_text().startswith("|--- outlook") and model.score(frame, play) == 1.0


def test_rules_say_what_the_tree_predicts() -> None:
    """Every row fulfils one rule, which names its prediction."""
    x = np.column_stack([RNG.normal(size=60), RNG.integers(0, 3, 60)])
    y = np.where(x[:, 0] > 0.3, "hot", "cold")
    frame = pd.DataFrame({"size": x[:, 0], "kind": x[:, 1].astype(int).astype(str)})
    for model in (C45Classifier(prune=False), ID3Classifier()):
        if isinstance(model, ID3Classifier):
            frame["size"] = np.where(frame["size"] > 0.3, "large", "small")
        told = model.fit(frame, y).rules()
        assert len(told) == int((model.energy_.answers == 0).sum())
        for row, label in zip(frame.to_dict("records"), model.predict(frame)):
            hits = [rule for rule in told if fulfils(rule, row)]
            assert len(hits) == 1 and f"class {label} " in hits[0]


def fulfils(rule: str, row: dict[str, object]) -> bool:
    for part in rule.removeprefix("if ").split(" then ")[0].split(" and "):
        name, sign, value = part.split(" ")
        own = str(row[name])
        if sign == "=":
            holds = own == value
        else:
            holds = (float(own) <= float(value)) == (sign == "<=")
        if not holds:
            return False
    return True


def test_upper_limits() -> None:
    found = [upper_limit(*case) for case in ((0, 6), (0, 9), (0, 1), (1, 16))]
    np.testing.assert_allclose(found, [0.206299, 0.142756, 0.75, 0.159611], atol=1e-6)


def test_threshold_is_the_best_of_all() -> None:
    x = RNG.normal(size=40)
    y = (x + 0.5 * RNG.normal(size=40) > 0.2).astype(int)
    model = C45Classifier(prune=False).fit(x[:, None], y)
    ordered = np.sort(x)
    cuts = 0.5 * (ordered[1:-2] + ordered[2:-1])  # at least two rows on each side
    gains = [information_gain(y, x > t) for t in cuts]
    assert float(model.energy_.threshold[0]) == pytest.approx(cuts[int(np.argmax(gains))])


def test_missing_values_go_down_all_branches() -> None:
    x = np.r_[np.zeros(6), np.ones(4), np.nan, np.nan]
    y = np.r_[np.zeros(6), np.ones(4), 0, 1].astype(int)
    model = C45Classifier(prune=False).fit(x[:, None], y)
    p = model.predict_proba(np.array([[0.0], [1.0], [np.nan]]))
    np.testing.assert_allclose(p[2], 0.6 * p[0] + 0.4 * p[1])
    # each branch holds its rows and its share of the two unknown ones
    np.testing.assert_allclose(p[0], [6.6 / 7.2, 0.6 / 7.2])


def test_costs_remove_an_attribute() -> None:
    a = RNG.integers(0, 2, 300)
    b = np.where(RNG.random(300) < 0.1, 1 - a, a)
    table = np.column_stack([a, b]).astype(str)
    free = C45Classifier(costs=[1.0, 1.0], prune=False).fit(table, a)
    dear = C45Classifier(costs=[50.0, 1.0], prune=False).fit(table, a)
    assert int(free.energy_.attribute[0]) == 0 and int(dear.energy_.attribute[0]) == 1
    with pytest.raises(ValueError, match="costs must be 2 positive numbers"):
        C45Classifier(costs=[1.0]).fit(table, a)


def test_noise_is_pruned_to_one_leaf() -> None:
    table = RNG.integers(0, 2, (400, 3)).astype(str)
    y = (RNG.random(400) < 0.3).astype(int)
    assert len(C45Classifier(prune=False).fit(table, y).energy_.value) > 5
    assert len(C45Classifier().fit(table, y).energy_.value) == 1


def test_pruning_keeps_what_is_real() -> None:
    x = RNG.uniform(size=(300, 2))
    y = (x[:, 0] > 0.5) ^ (RNG.random(300) < 0.1)
    pruned, grown = C45Classifier().fit(x, y), C45Classifier(prune=False).fit(x, y)
    assert len(pruned.energy_.value) < len(grown.energy_.value)
    fresh = RNG.uniform(size=(2000, 2))
    assert (pruned.predict(fresh) == (fresh[:, 0] > 0.5)).mean() > 0.85


def test_weight_is_repetition() -> None:
    w = RNG.integers(0, 3, len(ROWS)).astype(float)
    index = np.repeat(np.arange(len(ROWS)), w.astype(int))
    for model in (ID3Classifier, C45Classifier):
        a = model().fit(ROWS, SICK, sample_weight=w).predict_proba(ROWS)
        b = model().fit(ROWS[index], SICK[index]).predict_proba(ROWS)
        np.testing.assert_allclose(a, b, atol=1e-12)
