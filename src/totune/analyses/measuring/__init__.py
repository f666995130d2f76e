"""What analyses measure with, apart from options and drawing."""
