package transfer

import (
	"reflect"
	"slices"
	"time"

	"partnerapi/db/records"
	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// kind is a kind of objects: how its lines are read, and applied.
type kind struct {
	records.Kind
	*plan
	// then is the kind that later applies another part of the lines whose records meet
	// wants; nil for none.
	then  *kind
	wants func(record any) bool
	// times multiplies the number of lines that are applied in one transaction. workers is
	// how many transactions apply lines of different objects at a time: more than 1 only if
	// no line claims what another object has.
	times, workers int
}

// kinds are the kinds of objects in the order in which a run applies them: each
// after those that it refers to. Collections and users refer to each other: the
// memberships in users' records come after both.
var kinds = []*kind{
	of(records.Partners), of(records.Courses), of(records.Clients), of(records.Admins), of(records.Groups),
	users, of(records.Collections), users.then, of(records.Policies), of(records.Frameworks),
	history(records.Results), history(records.SentEmails), of(records.Exposures),
}

var users = &kind{
	Kind: records.Users, plan: planOf(records.Users), times: 1, workers: 1,
	then:  of(records.Memberships),
	wants: func(record any) bool { return len(record.(*domain.UserRecord).CollectionIDs.Value) > 0 },
}

func of(r records.Kind) *kind { return &kind{Kind: r, plan: planOf(r), times: 1, workers: 1} }

// history makes a kind of which users have many: mails that they were sent, and the
// like.
func history(r records.Kind) *kind { return &kind{Kind: r, plan: planOf(r), times: 5, workers: 2} }

// kindCalled returns the kind with a name in lines; nil if there is none.
func kindCalled(object string) *kind {
	for _, k := range kinds {
		if k.object == object {
			return k
		}
	}
	return nil
}

// place is the place of the kind among all.
func (k *kind) place() int { return slices.Index(kinds, k) }

// staged returns a line as it is staged. The error says what is wrong with the line itself.
func (k *kind) staged(text []byte, now time.Time) (records.StagedLine, error) {
	record, err := k.read(text, now)
	l := records.StagedLine{Text: string(text)}
	if err != nil {
		return l, err
	}
	// Lines of other kinds are applied in their order, and need no object.
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

// readAgain reads a line that read accepted before, without checking it by its rules.
func (k *kind) readAgain(text []byte) (record any, err error) {
	record = reflect.New(k.Type()).Interface()
	f := &rule.Faults{}
	rule.Reader{Skip: "object"}.Read(text, record, f)
	k.rules.Clean(record)
	return record, errorOf(f)
}

// read reads a line into a record. The error says what is wrong with it.
func (k *kind) read(text []byte, now time.Time) (record any, err error) {
	record = reflect.New(k.Type()).Interface()
	f := &rule.Faults{}
	if err := k.plan.read(text, record, now, f); err != nil {
		return nil, err
	}
	if u, is := record.(*domain.UserRecord); is && u.SendWelcomeEmail.Value {
		f.Add("send_welcome_email", "must be false: an import sends no mail")
	}
	return record, errorOf(f)
}
