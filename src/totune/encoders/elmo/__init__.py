"""ELMo (Peters et al. 2018): words read by their characters, then a language model both ways."""
