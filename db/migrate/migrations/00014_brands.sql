-- +goose Up
-- locks: partners, SHARE ROW EXCLUSIVE, a moment
-- locks: clients, SHARE ROW EXCLUSIVE, a moment

-- subject: Partners, keys and the audit trail
CREATE TABLE brands (
    id              uuid PRIMARY KEY,
    partner_id      uuid REFERENCES partners,
    client_id       uuid REFERENCES clients,
    display_name    text NOT NULL DEFAULT '',
    logo            bytea CHECK (octet_length(logo) <= 262144),
    accent_color    text NOT NULL DEFAULT '' CHECK (accent_color ~ '^(#[0-9a-f]{6})?$'),
    sender_name     text NOT NULL DEFAULT '',
    sender_email    text NOT NULL DEFAULT '',
    reply_to        text NOT NULL DEFAULT '',
    support_contact text NOT NULL DEFAULT '',
    postal_line     text NOT NULL DEFAULT '',
    CONSTRAINT brands_partner_unique UNIQUE (partner_id),
    CONSTRAINT brands_client_unique UNIQUE (client_id),
    CONSTRAINT brands_owner_check CHECK (partner_id IS NULL OR client_id IS NULL)
);
COMMENT ON TABLE brands IS
    'What people see of the service, a partner or a client in emails, pages and reports. An empty or null field inherits from the client''s partner, then from the service.';
COMMENT ON COLUMN brands.partner_id IS 'Null in the brand of a client, and in the service''s own.';
COMMENT ON COLUMN brands.client_id IS 'Null in the brand of a partner, and in the service''s own.';
COMMENT ON COLUMN brands.logo IS 'A PNG or JPEG file that the service has encoded.';
COMMENT ON COLUMN brands.accent_color IS 'As #rrggbb, in lower case.';
COMMENT ON COLUMN brands.support_contact IS 'An email address, a phone number or an https URL.';
CREATE UNIQUE INDEX brands_service_unique ON brands ((true)) WHERE partner_id IS NULL AND client_id IS NULL;
COMMENT ON INDEX brands_service_unique IS 'The service''s own brand, of which there is one.';
