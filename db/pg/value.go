package pg

import (
	"database/sql/driver"
	"reflect"

	"github.com/jackc/pgx/v5/pgtype"

	"partnerapi/domain"
)

// wireValue is a value as the driver gets it. Ids and dates give their binary form, which
// spares the driver a failed try and an error for each; for a parameter of another type they
// are still text.
func wireValue(value any) any {
	switch v := value.(type) {
	case domain.Date:
		return dateValue{v}
	case idBytes:
		if reflect.TypeOf(value).Kind() == reflect.Array { // and no pointer to one
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

// UUIDValue is the value for a uuid.
func (v idValue) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: v.Bytes(), Valid: true}, nil
}

type dateValue struct{ domain.Date }

// DateValue is the value for a date.
func (v dateValue) DateValue() (pgtype.Date, error) {
	return pgtype.Date{Time: v.Time(), Valid: !v.IsZero()}, nil
}

// Or is what p points to, or instead where that is nil: of a column that may be null.
func Or[T any](p *T, instead T) T {
	if p == nil {
		return instead
	}
	return *p
}

// Number is 1 of true and 0 of false, for a statement that counts.
func Number(b bool) int {
	if b {
		return 1
	}
	return 0
}
