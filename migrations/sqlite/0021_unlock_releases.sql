-- Forced releases by their end: each server passes new ones to its inventory, a few times a second.
CREATE INDEX unlocks_released ON unlocks (ended_at) WHERE state = 'released';
