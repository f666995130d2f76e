"""Sentences whose words are tagged: schemes of tags, their columns, and their sentences."""
