"""Encoder inputs: texts as word pieces, and batches of them."""
