-- +goose Up
-- locks: none
-- Users of a large audience who are to be given a course. The request that asks
-- for it judges and counts them; the background work gives them the course, a
-- batch in each transaction, and deletes their rows in it.
CREATE TABLE waiting_assignments (
    client_id uuid NOT NULL,
    user_id   uuid NOT NULL,
    course_id uuid NOT NULL,
    due_on    date NOT NULL,
    notify    boolean NOT NULL,
    asked_at  timestamptz NOT NULL,
    PRIMARY KEY (client_id, user_id, course_id)
);
CREATE INDEX waiting_assignments_by_course ON waiting_assignments (client_id, course_id, due_on, notify);
