-- +goose Up
-- locks: policy_signatures, SHARE, 1 s per million rows
-- What a user signed: reports read it user by user.
CREATE INDEX policy_signatures_by_user ON policy_signatures (client_id, user_id, signed_at);
