"""The stages of a study, in order, and what is missing after each."""

from __future__ import annotations

FIRST, CANDIDATES, TUNED, WHY, REFITS, CURVE, DONE = (
    "first answer", "chosen model", "tuned", "explained", "refits", "learning curve", "done",
)  # fmt: skip
TUNING, REPEATS = "tuning", "repeats"
FOR_TIME = "a longer --budget, or --thorough"
PARTS = (
    "the other candidates", TUNING, "the explanation", "refits", "the learning curve", REPEATS,
)  # fmt: skip
AFTER = {
    stage: PARTS[i:] for i, stage in enumerate((FIRST, CANDIDATES, TUNED, WHY, REFITS, CURVE, DONE))
}
EVIDENCE = (WHY, REFITS, CURVE)  # what further fits of the chosen model tell
# parts of the evidence that may be left out one by one, by the names that --without takes
EXPLANATION, SEEDS, RESAMPLES, SOURCES, LEARNING, DIAGNOSIS, REMEDIES = (
    "explanation", "seeds", "bootstrap", "sources", "learning curve", "diagnosis", "remedies",
)  # fmt: skip
INSIDE = {WHY: (EXPLANATION,), REFITS: (REFITS,), CURVE: (LEARNING, DIAGNOSIS)}
OPTIONAL = (EXPLANATION, REFITS, SEEDS, RESAMPLES, SOURCES, LEARNING, DIAGNOSIS, REMEDIES)
