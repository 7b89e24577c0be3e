"""Docstrings and LaTeX formulas as plain text for a terminal."""

from __future__ import annotations

import inspect
import re

_SYMBOLS = {
    "theta": "θ", "alpha": "α", "beta": "β", "lambda": "λ", "mu": "μ", "sigma": "σ", "pi": "π",
    "varphi": "φ", "phi": "φ", "epsilon": "ε", "varepsilon": "ε", "eta": "η", "tau": "τ",
    "nu": "ν", "xi": "ξ", "Sigma": "Σ", "Delta": "Δ", "Omega": "Ω", "Lambda": "Λ", "Phi": "Φ",
    "sum": "Σ", "prod": "Π", "int": "∫", "nabla": "∇", "infty": "∞", "partial": "∂",
    "le": "≤", "ge": "≥", "leq": "≤", "geq": "≥", "ne": "≠", "in": "∈", "sim": "~",
    "propto": "∝", "cdot": "·", "times": "×", "otimes": "⊗", "pm": "±", "leftarrow": "←",
    "rightarrow": "→", "to": "→", "approx": "≈", "mid": " | ", "dots": "…", "ell": "ℓ",
    "top": "ᵀ", "quad": "  ", "qquad": "   ", "circ": "∘", "ldots": "…",
}  # fmt: skip
_DROP = ("left", "right", "Bigl", "Bigr", "bigl", "bigr", "Big", "big", "textstyle", "displaystyle")
_WRAP = ("mathrm", "mathbb", "mathbf", "mathcal", "operatorname", "text", "boldsymbol", "mathrel")
_ACCENTS = {"hat": "\u0302", "tilde": "\u0303", "bar": "\u0304"}


def plain(latex: str) -> str:
    r"""A formula as readable text.

    >>> plain(r"e(x, y) = \tfrac12\|y - Wx - b\|^2"), plain(r"\min_{W, b} \sum_i w_i\,e_{y_i}")
    ('e(x, y) = 1/2 ‖y - Wx - b‖²', 'min_{W, b} Σ_i w_i e_{y_i}')
    """
    text = latex.replace(r"\|", "‖").replace(r"\{", "{").replace(r"\}", "}")
    text = re.sub(r"\\[dt]?frac\s*(\d)\s*(\d)", r"\1/\2 ", text)
    braced = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
    text = re.sub(rf"\\[dt]?frac\s*(\d)\s*{braced}", r"\1/(\2) ", text)
    text = re.sub(rf"\\[dt]?frac\s*{braced}\s*{braced}", r"(\1)/(\2) ", text)
    text = re.sub(r"\\[dt]?frac\s*(\w|\\[a-z]+)\s*(\w)", r"\1/\2 ", text)
    for accent, mark in _ACCENTS.items():
        text = re.sub(rf"\\{accent}\s*(?:\{{(\w)\}}|(\w))", rf" \g<1>\g<2>{mark}", text)
    text = re.sub(rf"\\(?:{'|'.join(_WRAP)})\s*{braced}", r"\1", text)
    text = re.sub(rf"\\(?:{'|'.join(_WRAP)})\s*(\w)", r"\1", text)
    text = re.sub(rf"\\sqrt\s*{braced}", r"√(\1)", text)
    text = re.sub(rf"\\(?:{'|'.join(_DROP)})(?![A-Za-z])", "", text)
    text = re.sub(r"(?<=\w)(?=\\(?:log|min|max|exp|arg))", " ", text)
    text = re.sub(r"\\(log|min|max|exp|arg)(?![_^(])", r"\\\1 ", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda m: _SYMBOLS.get(m[1], m[1]), text)
    text = re.sub(r"\\[,;:! ]", " ", text)
    text = re.sub(r"\^\{?ᵀ\}?", "ᵀ", text)
    text = text.replace("^2", "²").replace("^3", "³").replace("\\\\", " ").replace("&", "")
    text = re.sub(r"([_^])\{(\w)\}", r"\1\2", text)
    text = re.sub(r"\((\w)\)/", r"\1/", text)
    text = re.sub(r"/\((\w)\)", r"/\1", text)
    return (
        re.sub(r"\s+([,.;)])", r"\1", " ".join(text.split())).replace("( ", "(").replace("{ ", "{")
    )


def sentences(obj: object) -> str:
    """The first paragraph of a docstring in plain text."""
    doc = inspect.cleandoc(getattr(obj, "__doc__", None) or "")
    first = " ".join(doc.split("\n\n", 1)[0].split())
    return re.sub(r":math:`([^`]*)`", lambda m: plain(m[1]), first).replace("``", "")


def formula(obj: object) -> str:
    """The first displayed formula of a docstring, as LaTeX; empty when there is none."""
    doc = inspect.cleandoc(getattr(obj, "__doc__", None) or "")
    found = re.search(r"^\.\. math::(?P<one>.*)\n?(?P<more>(?:\s*\n|[ \t]+.*\n?)*)", doc, re.M)
    if found is None:
        return ""
    return " ".join(f"{found['one']} {found['more']}".split())
