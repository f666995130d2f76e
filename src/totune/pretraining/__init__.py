"""Language models from text: a masked one (BERT) or a bidirectional one (ELMo)."""
