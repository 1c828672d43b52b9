"""Collectives against closed forms, a second network model and lower bounds."""
