"""The checks of ``tilewright validate``: results that are known without the simulator."""
