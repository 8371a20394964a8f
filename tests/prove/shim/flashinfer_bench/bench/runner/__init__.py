"""Their runners, which their tests of inputs import and do not use."""

IsolatedRunner = None
