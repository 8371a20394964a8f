"""Fronts in processes of their own, and what starts and watches them."""
