"""Rules of embeddings: two views of a row, rows of one label, and pairs of two kinds."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.learn.rules.views.labelled import LabelledContrast as LabelledContrast
    from groundstate.learn.rules.views.paired import PairedViews as PairedViews
    from groundstate.learn.rules.views.two_views import TwoViews as TwoViews

lazy(__name__)
