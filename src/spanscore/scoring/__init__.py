"""The engine: it has a closed trace read and evaluated, and hands the report to the emitters."""
