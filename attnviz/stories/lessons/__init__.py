"""The stories, one module each, whose function `build_story` computes the story."""
