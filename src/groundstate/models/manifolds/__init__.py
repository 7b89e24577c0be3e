"""Maps of high-dimensional rows: multidimensional scaling, Isomap, t-SNE."""
