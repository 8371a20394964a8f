"""What each sequence holds of the states: pure accounting that returns the copies to make."""
