"""What tests share: oracles that enumerate, the cases laws run on, and stand-ins for a user."""
