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
	// judge says what is wrong with a line as such, nil for nothing, and the line as it
	// is staged.
	judge(text []byte, now time.Time) (db.StagedLine, error)
	// apply applies the lines of the kind that are staged, round by round.
	apply(ctx context.Context, r *run) error
}

// kinds are the kinds of objects in the order in which a run applies them: each
// after those that it refers to. Collections and users refer to each other: whom a
// record of a user puts into which collections comes after both.
var kinds = []kind{
	of("partner", (*db.DB).ImportPartners),
	of("course", (*db.DB).ImportCourses),
	of("client", (*db.DB).ImportClients),
	of("admin", (*db.DB).ImportAdmins),
	of("group", (*db.DB).ImportGroups),
	users,
	of("collection", (*db.DB).ImportCollections),
	users.then,
	of("policy", (*db.DB).ImportPolicies),
	of("framework_assignment", (*db.DB).ImportFrameworkAssignments),
	history("phishing_result", (*db.DB).ImportResults, func(r *domain.ResultRecord) userField { return r.User }),
	history("sent_email", (*db.DB).ImportSentEmails, func(r *domain.SentEmailRecord) userField { return r.User }),
	of("exposure", (*db.DB).ImportExposures), // as they come: several may be of one exposure, which has no id
}

type userField = domain.Optional[domain.Ref[domain.UserKind]]

var users = &records[domain.UserRecord]{
	planned: planOf[domain.UserRecord]("user"),
	write:   (*db.DB).ImportUsers,
	check: func(u *domain.UserRecord, wrong *faults) {
		if u.SendWelcomeEmail.Value {
			wrong.say("send_welcome_email must be false: an import sends no mail")
		}
	},
	then:  of("user", (*db.DB).ImportMemberships),
	at:    func(u *domain.UserRecord, l *db.StagedLine) { l.ClientID = &u.Client.Value.ID },
	wants: func(u *domain.UserRecord) bool { return len(u.CollectionIDs.Value) > 0 },
}

// kindCalled finds a kind, and its place among all, by what lines call it.
func kindCalled(object string) (k kind, place int) {
	for place, k := range kinds {
		if k.plan().object == object {
			return k, place
		}
	}
	return nil, 0
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

	// at says where a line belongs; nil for a kind whose lines are applied in the order
	// in which they come.
	at func(*T, *db.StagedLine)
	// times is how many times as many lines as of other kinds are applied in one
	// transaction; 0 is once.
	times int
	// workers are how many transactions apply lines of different objects at a time; 0 is
	// one. None of the lines claims what another has then.
	workers int
}

func of[T any](object string, write func(*db.DB, context.Context, []T) ([]domain.ImportResult, error)) *records[T] {
	return &records[T]{planned: planOf[T](object), write: write}
}

// history makes a kind of which users have many: mails that they were sent, and the
// like.
func history[T any](
	object string, write func(*db.DB, context.Context, []T) ([]domain.ImportResult, error),
	user func(*T) userField,
) *records[T] {
	k := of(object, write)
	k.at = func(record *T, l *db.StagedLine) { l.UserID = new(user(record).Value.ID) }
	k.times, k.workers = 5, 2
	return k
}

func (k *records[T]) plan() *plan { return k.planned }

// place is the place of the kind among all.
func (k *records[T]) place() int {
	for place, other := range kinds {
		if other == kind(k) {
			return place
		}
	}
	return len(kinds)
}

func (k *records[T]) judge(text []byte, now time.Time) (db.StagedLine, error) {
	record, err := k.read(text, now)
	l := db.StagedLine{Text: string(text)}
	if err == nil && k.at != nil {
		l.Object = new(k.idOf(&record))
		k.at(&record, &l)
	}
	return l, err
}

// read reads a line. The error says what is wrong with it.
func (k *records[T]) read(text []byte, now time.Time) (record T, err error) {
	wrong := k.planned.read(text, reflect.ValueOf(&record).Elem(), now)
	if k.check != nil && len(wrong.texts) == 0 {
		k.check(&record, wrong)
	}
	return record, wrong.err()
}

// idOf is the UUID of the object of a record.
func (k *records[T]) idOf(record *T) [16]byte { return k.planned.idOf(reflect.ValueOf(record).Elem()) }
