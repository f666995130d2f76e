"""A study in rounds, which leave out what is credibly worse and what cannot be decided."""
