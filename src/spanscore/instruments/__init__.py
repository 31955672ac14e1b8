"""What is measured: each instrument by name, unit and attributes, and what is counted until somebody asks."""
