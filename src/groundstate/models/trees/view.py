"""A fitted tree to look at, with the names of scikit-learn's ``tree_``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundstate.energy.trees.nodes import Tree
from groundstate.models.learned import Linked

LEAF = -2  # feature and threshold of a leaf, as in scikit-learn


@dataclass
class TreeView:
    """One tree as arrays over its nodes, root first, then left branch, then right branch.

    Attributes
    ----------
    feature : (n_nodes,) column that a node asks for, −2 in a leaf
    threshold : (n_nodes,) rows with ``x <= threshold`` go left
    children_left, children_right : (n_nodes,) −1 in a leaf
    missing_go_to_left : (n_nodes,)
    value : (n_nodes, n_outputs, n_classes or 1) class shares or means
    impurity, weighted_n_node_samples, n_node_samples : (n_nodes,)
    categories : for nodes that ask for a set of categories, which levels go left
    n_features : int
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    children_left: NDArray[np.int64]
    children_right: NDArray[np.int64]
    missing_go_to_left: NDArray[np.bool_]
    value: NDArray[np.float64]
    impurity: NDArray[np.float64]
    weighted_n_node_samples: NDArray[np.float64]
    n_node_samples: NDArray[np.int64]
    categories: dict[int, NDArray[np.bool_]]
    n_features: int

    @classmethod
    def of(cls, tree: Tree, n_features: int, classes: bool) -> TreeView:
        leaf = tree.feature < 0
        value = tree.value[:, None, :] if classes else tree.value[:, :, None]
        return cls(
            np.where(leaf, LEAF, tree.feature),
            np.where(leaf, LEAF, tree.threshold).astype(np.float64),
            tree.left,
            tree.right,
            tree.nan_left,
            value.astype(np.float64),
            tree.impurity.astype(np.float64),
            tree.weight.astype(np.float64),
            tree.rows.astype(np.int64),
            tree.categories,
            n_features,
        )

    def read_only(self) -> TreeView:
        """The same tree, whose arrays refuse to be written to: the model keeps its nodes packed."""
        why = (
            "a tree is not changed by writing to tree_; set its nodes with energy_.nodes.set([...])"
        )
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(self, name, Linked(value, None, why))
        return self

    @property
    def node_count(self) -> int:
        return len(self.feature)

    @property
    def n_outputs(self) -> int:
        return int(self.value.shape[1])

    @property
    def max_n_classes(self) -> int:
        return int(self.value.shape[2])

    @property
    def n_leaves(self) -> int:
        return int((self.children_left < 0).sum())

    @property
    def max_depth(self) -> int:
        depth = np.zeros(self.node_count, np.int64)
        for v in np.flatnonzero(self.children_left >= 0):  # parents come first
            depth[self.children_left[v]] = depth[self.children_right[v]] = depth[v] + 1
        return int(depth.max())

    def compute_feature_importances(self, normalize: bool = True) -> NDArray[np.float64]:
        """Weighted fall of impurity by column; sums to one unless the tree has no cut."""
        out = np.zeros(self.n_features)
        mass = self.impurity * self.weighted_n_node_samples
        at = np.flatnonzero(self.children_left >= 0)
        fall = mass[at] - mass[self.children_left[at]] - mass[self.children_right[at]]
        np.add.at(out, self.feature[at], fall)
        out /= self.weighted_n_node_samples[0]
        total = out.sum()
        return out / total if normalize and total > 0 else out
