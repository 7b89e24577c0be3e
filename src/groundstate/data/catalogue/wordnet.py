"""WordNet's data files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from groundstate.errors import DataError

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
_ABOVE = ("@", "@i")  # pointers to what is more general


@dataclass(frozen=True)
class Synset:
    """Words of one meaning.

    Attributes
    ----------
    id : part of speech and place in its file, such as "n01440764"
    words : its synonyms
    gloss : definition and examples
    above : ids of more general meanings
    """

    id: str
    words: tuple[str, ...]
    gloss: str
    above: tuple[str, ...]


def synset(line: str) -> Synset:
    """One line of a data file.

    >>> line = "00001740 03 n 01 entity 0 001 ~ 00001930 n 0000 | that which is perceived"
    >>> synset(line).words, synset(line).id
    (('entity',), 'n00001740')
    """
    facts, _, gloss = line.partition("|")
    fields = facts.split()
    try:
        n = int(fields[3], 16)
        words = tuple(w.split("(")[0].replace("_", " ") for w in fields[4 : 4 + 2 * n : 2])
        at = 4 + 2 * n
        pointers = [fields[at + 1 + 4 * i : at + 5 + 4 * i] for i in range(int(fields[at]))]
        above = tuple(_id(kind, place) for sign, place, kind, _ in pointers if sign in _ABOVE)
        return Synset(_id(fields[2], fields[0]), words, gloss.strip(), above)
    except (IndexError, ValueError):
        raise DataError(f"no synset of WordNet: {line[:60]!r}") from None


def _id(kind: str, place: str) -> str:
    return ("a" if kind == "s" else kind) + place


def read_wordnet(path: str | Path) -> dict[str, Synset]:
    """Synsets by id, from the folder with ``data.noun`` and the like, or the one around ``dict``."""
    root = Path(path)
    root = root / "dict" if (root / "dict").is_dir() else root
    files = [root / f"data.{part}" for part in PARTS if (root / f"data.{part}").is_file()]
    if not files:
        raise DataError(f"{str(path)!r} holds no file of WordNet such as 'data.noun'")
    found = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(" "):  # the licence is indented
                one = synset(line)
                found[one.id] = one
    return found
