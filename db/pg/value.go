package pg

import (
	"database/sql/driver"
	"reflect"

	"github.com/jackc/pgx/v5/pgtype"

	"partnerapi/domain"
)

// wireValue returns a value as it is passed to the driver. Ids and dates are wrapped so that the driver encodes them in
// binary; otherwise it would first attempt, and fail, to encode them as other types. For a parameter of another type
// they are still encoded as text.
func wireValue(value any) any {
	switch v := value.(type) {
	case domain.Date:
		return dateValue{v}
	case idBytes:
		if reflect.TypeOf(value).Kind() == reflect.Array { // not a pointer, which may be nil
			return idValue{v}
		}
	}
	return value
}

// idBytes is implemented by a domain.ID of any kind.
type idBytes interface {
	driver.Valuer
	Bytes() [16]byte
}

type idValue struct{ idBytes }

// UUIDValue implements pgtype.UUIDValuer.
func (v idValue) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: v.Bytes(), Valid: true}, nil
}

type dateValue struct{ domain.Date }

// DateValue implements pgtype.DateValuer. A zero date is NULL.
func (v dateValue) DateValue() (pgtype.Date, error) {
	return pgtype.Date{Time: v.Time(), Valid: !v.IsZero()}, nil
}

// Or returns *p or, if p is nil, instead. It is for nullable columns.
func Or[T any](p *T, instead T) T {
	if p == nil {
		return instead
	}
	return *p
}

// Number returns 1 for true and 0 for false.
func Number(b bool) int {
	if b {
		return 1
	}
	return 0
}
