package pg

import (
	"database/sql/driver"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"partnerapi/domain"
)

// NewID returns the id of a new object: a UUID of version 7.
func NewID[K domain.Kind]() domain.ID[K] { return domain.ID[K](uuid.Must(uuid.NewV7())) }

// IDs converts ids to a parameter of type uuid[].
func IDs[K domain.Kind](ids []domain.ID[K]) [][16]byte {
	list := make([][16]byte, len(ids))
	for i, id := range ids {
		list[i] = id
	}
	return list
}

// plainUUID is pgtype.UUIDCodec, but passes the bytes of a UUID to scanners, not its text.
type plainUUID struct{ pgtype.UUIDCodec }

// DecodeDatabaseSQLValue returns the 16 bytes of a UUID, which a scanner must copy. pgtype decodes NULL and texts.
func (u plainUUID) DecodeDatabaseSQLValue(
	types *pgtype.Map, oid uint32, format int16, src []byte,
) (driver.Value, error) {
	if format == pgtype.BinaryFormatCode && src != nil {
		return src, nil
	}
	return u.UUIDCodec.DecodeDatabaseSQLValue(types, oid, format, src)
}
