"""Readers of files and programs that were written for other systems, one package a source."""
