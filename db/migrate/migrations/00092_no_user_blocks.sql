-- +goose Up
-- locks: user_blocks, ACCESS EXCLUSIVE, a moment
-- locks: clients, ACCESS EXCLUSIVE, a moment
-- contracts: programs of before 00092 find no blocks, and skip rows on the index of users
-- Blocks of users are counted no more. The release before has an empty table until it is
-- stopped, and its daily refresh adds nothing. A later release drops the table and the function.
DROP TABLE user_blocks;
CREATE TABLE user_blocks (
    client_id uuid        NOT NULL,
    after_at  timestamptz NOT NULL,
    after_id  uuid        NOT NULL,
    active    integer     NOT NULL,
    inactive  integer     NOT NULL,
    PRIMARY KEY (client_id, after_at, after_id)
);
-- +goose StatementBegin
CREATE FUNCTION add_no_user_block() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER user_blocks_empty BEFORE INSERT ON user_blocks FOR EACH ROW EXECUTE FUNCTION add_no_user_block();
