"""Rules of embeddings: two views of a row, and rows of one label."""

from groundstate.learn.rules.views.labelled import LabelledContrast as LabelledContrast
from groundstate.learn.rules.views.two_views import TwoViews as TwoViews
