"""A study in rounds that eliminate what is credibly worse and what cannot be decided."""
