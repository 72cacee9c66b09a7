package transfer

import (
	"context"
	"reflect"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// kind is a kind of objects: how its lines are read, and applied.
type kind interface {
	plan() *plan
	// judge says what is wrong with a line as such; nil for nothing.
	judge(text []byte, now time.Time) error
	// apply applies the lines of the kind that wait.
	apply(ctx context.Context, r *run) error
}

// kindCalled finds a kind by what lines call it.
func kindCalled(object string) (kind, bool) {
	for _, k := range kinds {
		if k.plan().object == object {
			return k, true
		}
	}
	return nil, false
}

// records is a kind whose records are of one type.
type records[T any] struct {
	planned *plan
	// write applies a batch of records of different objects in a transaction, and
	// returns what became of each, in their order. It must not be called in a
	// transaction.
	write func(*db.DB, context.Context, []T) ([]domain.ImportResult, error)
	// check says what is wrong with the fields of a record together; nil for a kind
	// without such rules.
	check func(*T, *faults)
	// then is a kind that applies, later, another part of the lines whose records want
	// it; nil for none.
	then  *records[T]
	wants func(*T) bool
}

func of[T any](object string, write func(*db.DB, context.Context, []T) ([]domain.ImportResult, error)) *records[T] {
	return &records[T]{planned: planOf[T](object), write: write}
}

func (k *records[T]) plan() *plan { return k.planned }

func (k *records[T]) judge(text []byte, now time.Time) error {
	_, err := k.read(text, now)
	return err
}

// read reads a line. The error says what is wrong with it.
func (k *records[T]) read(text []byte, now time.Time) (record T, err error) {
	wrong := k.planned.read(text, reflect.ValueOf(&record).Elem(), now)
	if k.check != nil && len(wrong.texts) == 0 {
		k.check(&record, wrong)
	}
	return record, wrong.err()
}
