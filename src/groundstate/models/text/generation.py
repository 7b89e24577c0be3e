"""Texts out of a language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.data.text.tokenizer import Tokenizer
from groundstate.energy.networks.sequence import SequenceEnergy
from groundstate.errors import DataError
from groundstate.infer import decode
from groundstate.models.validation import checked_count

Method = Literal["greedy", "beam", "exhaustive", "sample"]


class Generates:
    """Free x: texts are continued token by token."""

    energy_: SequenceEnergy
    tokenizer_: Tokenizer
    end_: int

    def generate(
        self,
        prompt: str = "",
        *,
        n: int | None = None,
        max_new_tokens: int = 200,
        method: Method = "sample",
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repetition_penalty: float = 1.0,
        beams: int = 4,
        length_penalty: float = 0.0,
        random_state: Any = None,
    ) -> str | list[str]:
        """Continue a text, until it ends or has so many new tokens.

        What is further back than the context is forgotten.

        Parameters
        ----------
        prompt : how the text begins
        n : how many texts; None is one, as a string
        max_new_tokens : behind the prompt
        method : "sample", "greedy", or "beam", which searches as far as the context reaches
        temperature, top_k, top_p, min_p, repetition_penalty : of "sample", see ``infer.decode``
        beams, length_penalty : of "beam"
        random_state : of the draws

        Returns
        -------
        The prompt and what follows it.
        """
        check_is_fitted(self, "energy_")
        options: dict[str, Any] = {
            "temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p,
            "repetition_penalty": repetition_penalty, "beams": beams,
            "length_penalty": length_penalty, "generator": Key.of(random_state).torch(),
        }  # fmt: skip
        if not isinstance(prompt, str):
            raise DataError(
                f"prompt is one string to write on from, got {prompt!r:.40}; of several texts, call "
                "generate for each"
            )
        given = self.tokenizer_.encode(prompt)
        draws = 1 if n is None else checked_count(n, "n")
        rows = self._continued_tokens(given, draws, max_new_tokens, method, options)
        texts = [prompt + self._decoded_from(given, row) for row in rows]
        return texts[0] if n is None else texts

    def sample(
        self, n_samples: int = 1, random_state: Any = None, *, max_new_tokens: int = 200
    ) -> list[str]:
        """Draw texts, each up to its end or so many tokens."""
        found = self.generate(n=n_samples, max_new_tokens=max_new_tokens, random_state=random_state)
        assert isinstance(found, list)
        return found

    def _decoded_from(self, prompt: Sequence[int], row: Sequence[int]) -> str:
        """The text of new tokens, as it reads behind the prompt."""
        whole = self.tokenizer_.decode([*prompt, *row])
        before = self.tokenizer_.decode(prompt)
        return whole[len(before) :] if whole.startswith(before) else whole

    def _continued_tokens(
        self, prompt: Sequence[int], n: int, new: int, method: Method, options: dict[str, Any]
    ) -> list[list[int]]:
        """New tokens behind a prompt, without the end; a full context moves on by half."""
        energy, device = self.energy_, self.energy_.placement()[0]
        context = energy.length
        rows = n if method == "sample" else 1
        past = torch.tensor([[self.end_, *prompt]] * rows, device=device)  # (n, 1 + P)
        start, over = past.shape[1], torch.zeros(rows, dtype=torch.bool, device=device)
        energy.eval()
        while (made := past.shape[1] - start) < new and not bool(over.all()):
            if past.shape[1] > context:
                seen = past[:, -(context - min(new - made, (context + 1) // 2) + 1) :]
            else:
                seen = past
            known = seen.shape[1] - 1
            found = decode(
                energy, method, prompt=seen[:, 1:].contiguous(), given={"first": seen[:, 0]},
                max_new_tokens=min(new - made, context - known), end=self.end_,
                n=n if method == "beam" else 1, **options,
            )  # fmt: skip
            if method == "beam":  # the best ones of one search; what does not fit is not searched
                return [_until(row, self.end_) for row in found.tokens[0, :, known:]]
            fresh = torch.where(over[:, None], self.end_, found.tokens[:, 0, known:])
            past = torch.cat([past, fresh], 1)
            over = over | (fresh == self.end_).any(1)
        return [_until(row, self.end_) for row in past[:, start:]] * (n // rows)


def _until(row: Tensor, end: int) -> list[int]:
    tokens: list[int] = row.tolist()
    return tokens[: tokens.index(end)] if end in tokens else tokens
