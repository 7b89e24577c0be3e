"""How well a sequence of words or tags agrees with the right one."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.sequences.bleu import Bleu as Bleu
    from groundstate.math.sequences.bleu import bleu as bleu
    from groundstate.math.sequences.bleu import tokenize_13a as tokenize_13a
    from groundstate.math.sequences.spans import Span as Span
    from groundstate.math.sequences.spans import SpanReport as SpanReport
    from groundstate.math.sequences.spans import span_f1 as span_f1
    from groundstate.math.sequences.spans import spans as spans

lazy(__name__)
