-- +goose Up
-- locks: idempotency_records, ACCESS EXCLUSIVE, a moment
-- Bodies of requests with an Idempotency-Key are compared in canonical form.

ALTER TABLE idempotency_records ADD COLUMN canonical_hash bytea;
COMMENT ON COLUMN idempotency_records.canonical_hash IS
    'Of request_hash and the request with its body in canonical form (RFC 8785). Null in rows of 1.0; void where 1.0 has replaced request_hash.';
