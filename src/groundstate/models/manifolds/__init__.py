"""Maps of high-dimensional rows: scaling, Isomap, local coordinates, t-SNE, UMAP."""
