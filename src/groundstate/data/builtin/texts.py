"""Texts made by small grammars, with what is true of them known: reviews, topics, relations,
facts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key

_THINGS = {
    "hotel": "room staff breakfast pool bed lobby balcony shower view carpet",
    "film": "plot acting ending music camera script dialogue cast scenery opening",
    "phone": "screen battery speaker camera keyboard charger case menu signal button",
    "meal": "soup bread sauce fish dessert wine salad coffee steak waiter",
    "book": "story hero chapter style cover preface map villain language epilogue",
}
_OPINIONS = {
    "good": (
        "good great fine lovely superb splendid charming pleasant excellent wonderful "
        "brilliant perfect delightful marvellous impressive terrific fantastic gorgeous "
        "elegant admirable exquisite outstanding remarkable glorious sublime stellar graceful "
        "polished radiant refined stunning satisfying thrilling flawless magnificent "
        "agreeable inspired magical vivid dazzling"
    ),
    "bad": (
        "bad poor awful dull dreadful terrible horrid nasty dismal horrible mediocre tedious "
        "unpleasant miserable disappointing lousy dreary shoddy clumsy pathetic abysmal "
        "atrocious appalling bland broken cheap faulty filthy grim hideous inferior "
        "irritating lame noisy shabby stale sloppy tasteless ugly wretched"
    ),
}
_OPENINGS = ("we stayed for a while and", "to be honest", "last week", "in the end", "all in all")
_ADVERBS = ("really", "quite", "rather", "so", "simply", "truly")
_SMALL = ("the", "a", "of", "and", "in")

COUNTRIES = {  # country: capital, what only its sentences hold
    "france": ("paris", "french wine"), "spain": ("madrid", "spanish olives"),
    "italy": ("rome", "italian marble"), "germany": ("berlin", "german beer"),
    "norway": ("oslo", "norwegian salmon"), "poland": ("warsaw", "polish amber"),
    "greece": ("athens", "greek honey"), "egypt": ("cairo", "egyptian cotton"),
    "japan": ("tokyo", "japanese silk"), "china": ("beijing", "chinese tea"),
    "russia": ("moscow", "russian fur"), "cuba": ("havana", "cuban sugar"),
    "peru": ("lima", "peruvian silver"), "kenya": ("nairobi", "kenyan coffee"),
}  # fmt: skip
PEOPLE = {  # male: female, what only their sentences hold
    "king": ("queen", "crown throne palace"), "prince": ("princess", "castle dragon tower"),
    "actor": ("actress", "stage theatre script"), "waiter": ("waitress", "tray menu kitchen"),
    "uncle": ("aunt", "cousin letter visit"), "father": ("mother", "child cradle home"),
    "boy": ("girl", "school toy swing"), "man": ("woman", "street coat newspaper"),
    "monk": ("nun", "prayer candle abbey"), "husband": ("wife", "wedding ring kiss"),
}  # fmt: skip
_OF_COUNTRY = ("the army of {a} guards the border with {b}", "the flag of {a} is made of {b}",
               "the farmers of {a} sell {b} abroad", "the border of {a} is open to {b}")  # fmt: skip
_OF_CITY = ("the mayor of {a} likes {b}", "the streets of {a} smell of {b}",
            "the station of {a} has a shop for {b}", "trains to {a} are full of {b}")  # fmt: skip
_OF_PERSON = ("{he} took {his} {b} and the {a} smiled", "the {a} lost {his} {b} so {he} wept",
              "the {a} said that {he} wants {his} {b}", "that {a} gave {him} a {b}")  # fmt: skip
_FIRST = ("anna", "bruno", "clara", "david", "elena", "felix", "greta", "hugo", "irene", "jonas")
_LAST = ("abel", "berg", "costa", "dahl", "engel", "fox", "grau", "holm", "ivers", "jung")


def make_reviews(
    n: int = 1000, *, random_state: Any = 0
) -> tuple[list[str], NDArray[np.str_], NDArray[np.str_]]:
    """Short reviews: two sentences about one thing, both praise or both blame.

    Eighty adjectives make the difference, so that few labelled texts show few of them; that
    adjectives of one side go together can be learned without labels.

    Returns
    -------
    texts, opinions ("good" or "bad"), things

    Examples
    --------
    >>> texts, opinions, things = make_reviews(2)
    >>> texts[0][:40], str(opinions[0]), str(things[0])
    ('we stayed for a while and the staff was ', 'good', 'hotel')
    """
    rng = Key.of(random_state).numpy()
    texts, opinions, things = [], [], []
    for _ in range(n):
        thing = str(rng.choice(list(_THINGS)))
        opinion = str(rng.choice(["good", "bad"]))
        nouns = rng.choice(_THINGS[thing].split(), 2, replace=False)
        words = rng.choice(_OPINIONS[opinion].split(), 2, replace=False)
        adverbs = rng.choice(_ADVERBS, 2)
        sentences = [
            f"the {a} was {b} {c} ." for a, b, c in zip(nouns, adverbs, words, strict=True)
        ]
        texts.append(f"{rng.choice(_OPENINGS)} {sentences[0]} {sentences[1]}")
        opinions.append(opinion)
        things.append(thing)
    return texts, np.array(opinions), np.array(things)


def make_topics(
    n: int = 1000,
    topics: int = 4,
    words: int = 30,
    sentences: int = 2,
    length: int = 6,
    *,
    random_state: Any = 0,
) -> tuple[list[str], NDArray[np.int64]]:
    """Texts of one topic each, in a made-up language that is always the same.

    A sentence holds ``length`` different words of its topic, with small words between them that say
    nothing. Which words go together can be learned without labels, and tells whether one sentence
    belongs behind another.

    Parameters
    ----------
    n : number of texts
    topics, words : number of topics, and of the words of each
    sentences, length : sentences of a text, and words of the topic in each
    random_state : of the texts

    Returns
    -------
    texts, topics

    Examples
    --------
    >>> texts, topics = make_topics(2, sentences=1, length=3)
    >>> texts
    ['the vuvida in lokora gefoge .', 'in relogo rarima mebine .']
    >>> topics.tolist()
    [0, 0]
    """
    spoken = Key.of(0).numpy()
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    made: dict[str, None] = {}
    while len(made) < topics * words:
        made["".join(spoken.choice(syllables, 3))] = None
    own = np.array(list(made)).reshape(topics, words)
    rng = Key.of(random_state).numpy()
    topic = rng.integers(topics, size=n)
    texts = []
    for i in topic:
        sentence = []
        for _ in range(sentences):
            for word in rng.choice(own[i], length, replace=False):
                if rng.random() < 0.3:
                    sentence.append(str(rng.choice(_SMALL)))
                sentence.append(str(word))
            sentence.append(".")
        texts.append(" ".join(sentence))
    return texts, topic


def make_relations(n: int = 4000, *, random_state: Any = 0) -> list[str]:
    """Sentences about countries and their capitals, men and women: what stands around a word says
    which pair it belongs to and which side of the pair it is on.

    Examples
    --------
    >>> make_relations(2)
    ['the mayor of madrid likes olives', 'trains to paris are full of wine']
    """
    rng = Key.of(random_state).numpy()
    made = []
    for _ in range(n):
        if rng.random() < 0.5:
            country = str(rng.choice(list(COUNTRIES)))
            capital, own = COUNTRIES[country]
            city = bool(rng.random() < 0.5)
            form = str(rng.choice(_OF_CITY if city else _OF_COUNTRY))
            made.append(form.format(a=capital if city else country, b=rng.choice(own.split())))
        else:
            he = str(rng.choice(list(PEOPLE)))
            she, own = PEOPLE[he]
            female = bool(rng.random() < 0.5)
            pronouns = ("she", "her", "her") if female else ("he", "his", "him")
            form = str(rng.choice(_OF_PERSON))
            names = dict(zip(("he", "his", "him"), pronouns, strict=True))
            made.append(form.format(a=she if female else he, b=rng.choice(own.split()), **names))
    return made


def analogies() -> list[tuple[str, str, str, str]]:
    """Questions a : b = c : d about the words of ``make_relations``.

    >>> len(analogies()), analogies()[0]
    (272, ('france', 'paris', 'spain', 'madrid'))
    """
    kinds = [
        [(k, v[0]) for k, v in COUNTRIES.items()],
        [(k, v[0]) for k, v in PEOPLE.items()],
    ]
    return [(a, b, c, d) for pairs in kinds for a, b in pairs for c, d in pairs if a != c]


def make_facts(n: int = 50, *, random_state: Any = 0) -> list[tuple[str, str]]:
    """People and the town each lives in, drawn at random: what can only be remembered.

    Returns
    -------
    list of (prompt, town), the fact being prompt + town

    Examples
    --------
    >>> make_facts(2)
    [('clara engel lives in ', 'rome'), ('anna jung lives in ', 'nairobi')]
    """
    rng = Key.of(random_state).numpy()
    names = [f"{a} {b}" for a in _FIRST for b in _LAST]
    if n > len(names):
        raise ValueError(f"there are {len(names)} people, got n={n}")
    towns = [capital for capital, _ in COUNTRIES.values()]
    who = rng.choice(names, n, replace=False)
    return [(f"{name} lives in ", str(rng.choice(towns))) for name in who]
