-- locks: v1_usage, SHARE UPDATE EXCLUSIVE, 1 s per million rows
-- Validates the constraint of the migration before.
ALTER TABLE v1_usage VALIDATE CONSTRAINT v1_usage_surface_check;
