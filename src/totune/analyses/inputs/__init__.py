"""What analyses read: hidden states, trained models, texts, runs by size of the training set."""
