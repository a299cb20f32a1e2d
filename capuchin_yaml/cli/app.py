"""The program: finds the verb, loads only that one, and ends with its exit code."""
