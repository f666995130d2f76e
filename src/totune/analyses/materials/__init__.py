"""What analyses read: hidden states, trained models, corpora."""
