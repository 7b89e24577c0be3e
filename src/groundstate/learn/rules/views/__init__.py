"""Rules of embeddings: two views of a row, rows of one label, and pairs of two kinds."""

from groundstate.learn.rules.views.labelled import LabelledContrast as LabelledContrast
from groundstate.learn.rules.views.paired import PairedViews as PairedViews
from groundstate.learn.rules.views.two_views import TwoViews as TwoViews
