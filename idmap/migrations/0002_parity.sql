-- locks: v1_usage, ACCESS EXCLUSIVE, a moment
-- Calls of version 1 by parity are counted apart: no program that has to move makes them. NOT VALID reads no rows: those
-- that are there satisfied a stricter condition. Earlier versions write only values that it allows.
ALTER TABLE v1_usage DROP CONSTRAINT v1_usage_surface_check;
ALTER TABLE v1_usage ADD CONSTRAINT v1_usage_surface_check CHECK (surface IN ('v1', 'v2', 'parity')) NOT VALID;
COMMENT ON COLUMN v1_usage.surface IS
    'What the calls count as: calls of a version, or calls of v1 by parity, which compares both.';
