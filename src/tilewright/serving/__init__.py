"""Decode loop: requests, scheduler, HTTP server."""
