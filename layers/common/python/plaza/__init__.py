"""Plaza: the social side of an app, counted exactly."""
