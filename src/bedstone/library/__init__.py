"""What each kernel computes and where its source lies."""
