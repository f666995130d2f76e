"""What heads are built from: token sequences, recurrent layers, attention, matching, CRF."""
