"""The main job for rows that are no tables: pictures, graphs and their nodes."""
