package transfer

import (
	"reflect"
	"slices"
	"time"

	"partnerapi/db/records"
	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// kind defines how the lines of a kind of objects are read and applied.
type kind struct {
	records.Kind
	*plan
	// then is the kind that later applies the second part of the lines for whose records
	// wants returns true; nil for none.
	then  *kind
	wants func(record any) bool
	// times multiplies the number of lines that are applied in one transaction. workers is the number of concurrent
	// transactions, for lines of different objects: more than 1 only if lines cannot clash with other objects' names.
	times, workers int
}

// kinds are the kinds of objects in the order in which a run applies them: each kind after
// the kinds to which it refers. Collections and users refer to each other: the memberships
// in users' records are applied after both, by users.then.
var kinds = []*kind{
	of(records.Partners), of(records.Courses), of(records.Clients), of(records.Admins), of(records.Groups),
	users, of(records.Collections), users.then, of(records.Policies), of(records.Frameworks),
	history(records.Results), history(records.SentEmails), of(records.Exposures),
}

// users is the kind of users; its second part is the memberships in collections.
var users = &kind{
	Kind: records.Users, plan: planOf(records.Users), times: 1, workers: 1,
	then:  of(records.Memberships),
	wants: func(record any) bool { return len(record.(*domain.UserRecord).CollectionIDs.Value) > 0 },
}

// of returns a kind that is applied by one worker.
func of(r records.Kind) *kind { return &kind{Kind: r, plan: planOf(r), times: 1, workers: 1} }

// history returns a kind of which a user has many objects, such as sent mails: it is
// applied in larger transactions, by two workers.
func history(r records.Kind) *kind { return &kind{Kind: r, plan: planOf(r), times: 5, workers: 2} }

// kindCalled returns the kind whose name in lines is object; nil if there is none.
func kindCalled(object string) *kind {
	for _, k := range kinds {
		if k.object == object {
			return k
		}
	}
	return nil
}

// place returns the index of the kind in kinds.
func (k *kind) place() int { return slices.Index(kinds, k) }

// staged returns the line to be staged. The error says what is wrong with the line itself.
func (k *kind) staged(text []byte, now time.Time) (records.StagedLine, error) {
	record, err := k.read(text, now)
	l := records.StagedLine{Text: string(text)}
	if err != nil {
		return l, err
	}
	// These kinds are applied client by client or user by user, in the order of objects;
	// lines of other kinds in the order of the input, so they need no object.
	switch r := record.(type) {
	case *domain.UserRecord:
		l.Object, l.ClientID = new(k.idOf(record)), &r.Client.Value.ID
	case *domain.ResultRecord:
		l.Object, l.UserID = new(k.idOf(record)), &r.User.Value.ID
	case *domain.SentEmailRecord:
		l.Object, l.UserID = new(k.idOf(record)), &r.User.Value.ID
	}
	return l, nil
}

// readChecked reads a line that read has accepted before. It does not check the rules again.
func (k *kind) readChecked(text []byte) (record any, err error) {
	record = reflect.New(k.Type()).Interface()
	f := &rule.Faults{}
	rule.Reader{Skip: "object"}.Read(text, record, f)
	k.rules.Clean(record)
	return record, errorOf(f)
}

// read reads a line into a record, and checks it as of now. The error says what is wrong with it.
func (k *kind) read(text []byte, now time.Time) (record any, err error) {
	record = reflect.New(k.Type()).Interface()
	f := &rule.Faults{}
	if err := k.plan.read(text, record, now, f); err != nil {
		return nil, err
	}
	if u, ok := record.(*domain.UserRecord); ok && u.SendWelcomeEmail.Value {
		f.Add("send_welcome_email", "must be false: an import sends no mail")
	}
	return record, errorOf(f)
}
