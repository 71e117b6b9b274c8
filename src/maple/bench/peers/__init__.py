"""What users run today, on the same game, in the same benchmark."""
