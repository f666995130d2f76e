"""What analyses found, as figures and sections of a report."""
