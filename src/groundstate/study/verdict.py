"""Three sentences: how good, compared with what, and what to mind; a fourth about a rare class."""

from __future__ import annotations

from typing import Any

from groundstate.study.candidates import DUMMY, LINEAR
from groundstate.study.numbers import is_share, label, show, show_range, title

ENSEMBLE = "ensemble"
RECIPE = "recipe, which chose in each fold"  # on boards, where folds did not choose alike
_NAMED = 3  # models that are named in one sentence
_SERIOUS = {"serious": 0, "warning": 1}
_CONSTANT = {
    "classification": "the commonest class",
    "segmentation": "the commonest label for every pixel",
    "detection": "that there is nothing",
}
_PROPER = ("log_loss", "brier")  # in this order
_SIMPLE = {
    "stump": "one question about one column (stump)",
    "linear": "a linear model of all columns (linear)",
}


def three_sentences(facts: dict[str, Any]) -> list[str]:
    """The result of a study, from its facts: three sentences, and one about a rare class."""
    rare = _rare(facts)
    return [_how_good(facts), _compared(facts), *([rare] if rare else []), _mind(facts)]


def credited(facts: dict[str, Any]) -> str:
    """Whose score it is: the model's where one was chosen throughout, else the recipe's."""
    return "recipe" if _mixed(facts) else str(facts["chosen"])


def _named(model: str, begins: bool = False) -> str:
    """A model in a sentence; one that is no class has an article."""
    return model if model != ENSEMBLE else f"{'The' if begins else 'the'} {model}"


def _mixed(facts: dict[str, Any]) -> bool:
    return len(facts.get("chosen_in_folds") or {}) > 1


def _subject(facts: dict[str, Any]) -> tuple[str, str]:
    """Who predicts, and a half sentence on how often each model was kept."""
    if not _mixed(facts):
        guess = _CONSTANT.get(facts.get("task", ""), "the mean")
        constant = facts["chosen"] == DUMMY
        return f"Always answering {guess}" if constant else _named(facts["chosen"], True), ""
    folds = facts["chosen_in_folds"]
    kept, among = folds.get(facts["chosen"], 0), sum(folds.values())
    rivals = len(_compared_models(facts))
    among_them = (
        f"chooses among {rivals} models" if rivals > 1 else "takes its model or the constant answer"
    )
    return f"The recipe, which {among_them} in each fold,", (
        f"; the final choice, {_named(facts['chosen'])}, was chosen in {kept} of {among} folds"
    )


def _how_good(facts: dict[str, Any]) -> str:
    who, chosen = _subject(facts)
    target, design = facts["data"]["target"], facts["design"]
    metric, level = design["metric"], design["level"]
    score = facts["scores"][metric]
    as_share = "accuracy" if metric == "r2" else metric
    between = f"{level:.0%} interval {show_range(score['lo'], score['hi'], as_share)}"
    rows = f"{score['n']:,} rows it had never seen"
    if design["kind"] == "nested":
        rows = f"{score['n']:,} rows, each held back in turn"
    never = f"{rows} ({between})"
    if metric == "accuracy":
        return (
            f"{who} predicts {target!r} right in {show(score['value'], metric)} of {never}{chosen}."
        )
    if metric == "r2":
        share = show(score["value"], as_share)
        if score["value"] < -1:
            return f"{who} misses {target!r} by more than the mean of all rows does, on {rows}."
        return f"{who} explains {share} of the variation of {target!r} in {never}{chosen}."
    beside = _beside(facts, metric)
    return (
        f"{who} predicts {target!r} with {label(metric)} {show(score['value'], metric)} "
        f"({title(metric)}) on {never}{beside}{chosen}."
    )


def _beside(facts: dict[str, Any], metric: str) -> str:
    """The score that everybody can read, beside a proper one."""
    for name in ("accuracy", "r2"):
        if name != metric and name in facts["scores"]:
            return f", {label(name) if name == 'r2' else name} {show(facts['scores'][name]['value'], name)}"
    return ""


def _compared(facts: dict[str, Any]) -> str:
    metric, name, tied = facts["design"]["metric"], facts["chosen"], facts["comparison"]["tied"]
    base = facts["baselines"][DUMMY]
    baseline = base[metric]["value"] if metric in base else None
    guess = _CONSTANT.get(facts["task"], "the mean")
    amount = show(baseline, metric)
    if not is_share(metric):
        amount = f"{'an ' if metric == 'r2' else ''}{label(metric)} of {amount}"
    by, beside = facts["comparison"].get("metric", metric), ""
    if by != metric and by in base and by in facts["scores"]:
        both = f"{show(base[by]['value'], by)} against {show(facts['scores'][by]['value'], by)}"
        beside = f"{label(by).lower() if by == 'log_loss' else label(by)} {both}"
    if name == DUMMY and _alone(facts):
        return (
            "No model could be compared with it in the time there was: ask for a longer --budget."
        )
    if name == DUMMY:
        return f"No model did better than always answering {guess}: the columns do not help here."
    if not facts["baselines"]["better_than_dummy"]:
        proper = probabilities_alone(facts)
        if proper:
            sure = facts["scores"][proper]["value"], base[proper]["value"]
            named = "log loss" if proper == "log_loss" else label(proper)
            return (
                f"Its labels cannot be told apart from always answering {guess} ({amount}); its "
                f"probabilities are better than the shares of the classes ({named} "
                f"{show(sure[0])} against {show(sure[1])})."
            )
        return (
            f"It cannot be told apart from always answering {guess} "
            f"({'; '.join(filter(None, (amount, beside)))}), so do not rely on it."
        )
    against = f"Always answering {guess} gives {amount}" + (f" ({beside})" if beside else "")
    poor = facts["baselines"].get("worse_probabilities")
    if poor:
        return (
            f"{against}; its labels are better than that, its probabilities are not (log loss "
            f"{show(poor['model'])} against {show(poor['constant'])}), so use the labels alone."
        )
    others = [_named(other) for other in tied if other not in (name, DUMMY)]
    simple = [
        _SIMPLE.get(row["against"], row["against"])
        for row in facts["comparison"].get("test", ())
        if row["against"] != DUMMY
        and row["p_holm"] > 1 - facts["design"]["level"]
        and not (row["against"] == "linear" and LINEAR.get(facts["task"]) in (name, *tied))
    ]
    equal = [*others, *simple]
    if equal:
        verb = "does" if len(equal) == 1 else "do"
        return f"{against}; {_and(equal)} {verb} as well as far as these rows can tell."
    rivals = len(_compared_models(facts)) > 1
    return f"{against}{'; every other candidate is measurably worse' if rivals else ''}."


def probabilities_alone(facts: dict[str, Any]) -> str:
    """The proper score that shows probabilities to be better than a constant answer, labels not.

    Empty where the labels are better as well, where neither is, or where another score contradicts.
    """
    base = facts["baselines"].get(DUMMY, {})
    if facts["baselines"]["better_than_dummy"] or facts["chosen"] == DUMMY:
        return ""
    shown = (facts["design"]["metric"], facts["comparison"].get("metric"))
    known = [name for name in _PROPER if name in facts["scores"] and name in base]
    if any(
        name in shown or facts["scores"][name]["value"] >= base[name]["value"] for name in known
    ):
        return ""
    sure = [name for name in known if facts["scores"][name]["hi"] < base[name]["value"]]
    return sure[0] if sure else ""


def _alone(facts: dict[str, Any]) -> bool:
    """Whether candidates were asked for and none was compared with the constant answer."""
    return not _compared_models(facts) and len(facts["design"]["models"]) > 1


def _compared_models(facts: dict[str, Any]) -> list[str]:
    """Models in the race, without the constant answer and those that were left out or failed."""
    entries = facts["candidates"]["entries"]
    return [e["name"] for e in entries if e["name"] != DUMMY and e.get("score", 0.0) is not None]


def _rare(facts: dict[str, Any]) -> str:
    """How well a rare class is found, which a share of all rows does not show."""
    found = facts.get("rare")
    if not found:
        return ""
    name, share = found["class"], show(found["share"], "accuracy")
    recall, precision = found["recall"], found["precision"]
    begun = f"Class {name!r} is rare ({share} of the rows)"
    if recall["value"] == 0:
        text = f"{begun} and is never {'found' if found['called'] else 'predicted'}"
    else:
        text = (
            f"{begun}: {show(recall['value'], 'recall')} of it is found "
            f"({show_range(recall['lo'], recall['hi'], 'recall')}), and "
            f"{show(precision['value'], 'precision')} of the rows called {name!r} are"
        )
    ranked = found.get("average_precision")
    if ranked:
        text += f"; average precision {show(ranked['value'])}, by chance {show(found['share_held_out'])}"
    return f"{text}."


def _mind(facts: dict[str, Any]) -> str:
    found = [f for f in facts["data"]["findings"] if f["severity"] in _SERIOUS]
    if not found:
        return "The audit of the table found nothing to worry about."
    worst = min(found, key=lambda finding: _SERIOUS[finding["severity"]])
    more = len(found) - 1
    rest = f" (and {more} more in the report)" if more else ""
    return f"Before you rely on it: {worst['sentence'].rstrip('.')}{rest}."


def _and(names: list[str]) -> str:
    """Names in a sentence; of many the first ones and the number of the others."""
    if len(names) > _NAMED + 1:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} others"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
