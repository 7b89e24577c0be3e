"""MODELS: the presets people import; each is an energy, a rule and a solver behind one contract."""
