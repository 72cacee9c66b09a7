-- +goose NO TRANSACTION
-- +goose Up
-- locks: phishing_results, SHARE UPDATE EXCLUSIVE, 6 s per million rows
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS phishing_results_by_send;
CREATE INDEX CONCURRENTLY phishing_results_by_send ON phishing_results (client_id, send_at, id);
COMMENT ON INDEX phishing_results_by_send IS 'The list sorted by send_at.';

DROP INDEX CONCURRENTLY IF EXISTS phishing_results_by_status_send;
CREATE INDEX CONCURRENTLY phishing_results_by_status_send ON phishing_results (client_id, status, send_at, id);
COMMENT ON INDEX phishing_results_by_status_send IS 'The list''s filter status, sorted by send_at.';
