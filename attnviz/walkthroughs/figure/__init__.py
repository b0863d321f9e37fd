"""Pictures of walkthroughs."""
