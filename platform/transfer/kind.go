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
	// judge says what is wrong with a line as such, nil for nothing, and of which object
	// it is and where it belongs.
	judge(text []byte, now time.Time) (id [16]byte, at place, err error)
	// placed reports whether lines are applied by their places.
	placed() bool
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

	// at is where a line belongs; nil for a kind whose lines are applied in the order in
	// which they come. owned says that the client is that of the user.
	at    func(*T) place
	owned bool
	// times is how many times as many lines as of other kinds are applied in one
	// transaction; 0 is once.
	times int
	// workers are how many transactions apply lines at a time; 0 is one. Lines may
	// follow each other in any order then: none of them claims what another has.
	workers int
}

func of[T any](object string, write func(*db.DB, context.Context, []T) ([]domain.ImportResult, error)) *records[T] {
	return &records[T]{planned: planOf[T](object), write: write}
}

func (k *records[T]) plan() *plan { return k.planned }

// history makes a kind of which users have many: mails that they were sent, and the
// like.
func history[T any](
	object string, write func(*db.DB, context.Context, []T) ([]domain.ImportResult, error),
	user func(*T) userField,
) *records[T] {
	k := of(object, write)
	k.at = func(record *T) place { return place{user: user(record).Value.ID} }
	k.owned, k.times, k.workers = true, 5, 2
	return k
}

func (k *records[T]) placed() bool { return k.at != nil }

func (k *records[T]) judge(text []byte, now time.Time) (id [16]byte, at place, err error) {
	record, err := k.read(text, now)
	if err == nil && k.at != nil {
		at = k.at(&record)
	}
	return k.planned.idOf(reflect.ValueOf(&record).Elem()), at, err
}

// read reads a line. The error says what is wrong with it.
func (k *records[T]) read(text []byte, now time.Time) (record T, err error) {
	wrong := k.planned.read(text, reflect.ValueOf(&record).Elem(), now)
	if k.check != nil && len(wrong.texts) == 0 {
		k.check(&record, wrong)
	}
	return record, wrong.err()
}
