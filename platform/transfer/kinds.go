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
	rules *rule.Rules // of the records
	// then is the kind that later applies the second part of a line, if hasSecondPart returns true for the line's
	// record; nil for none.
	then          *kind
	hasSecondPart func(record any) bool
	// times multiplies the number of lines that are applied in one transaction. workers is the number of concurrent
	// transactions, for lines of different objects. It is more than 1 only if the names of objects cannot conflict.
	times, workers int
}

// kinds are the kinds of objects in the order in which a run applies them: each kind after those to which it refers.
// Collections and users refer to each other: users.then applies the memberships in users' records after both.
var kinds = []*kind{
	newKind(records.Partners), newKind(records.Courses), newKind(records.Clients), newKind(records.Brands),
	newKind(records.Admins), newKind(records.Groups), users, newKind(records.Collections), users.then, newKind(records.Policies),
	newKind(records.Frameworks), training,
	newHistory(records.Results), newHistory(records.SentEmails), newKind(records.Exposures),
}

// users is the kind of users; its second part is the memberships in collections.
var users = &kind{
	Kind: records.Users, rules: rule.Of(records.Users.Type()), times: 1, workers: 1,
	then:          newKind(records.Memberships),
	hasSecondPart: func(record any) bool { return len(record.(*domain.UserRecord).CollectionIDs.Value) > 0 },
}

// training is the kind of rounds of courses. One worker applies them, in the order of a user's lines: a round waits for
// the round before it.
var training = &kind{Kind: records.Training, rules: rule.Of(records.Training.Type()), times: 5, workers: 1}

// newKind returns a kind of which one worker applies run.batchLines lines in a transaction.
func newKind(r records.Kind) *kind {
	return &kind{Kind: r, rules: rule.Of(r.Type()), times: 1, workers: 1}
}

// newHistory returns a kind of which a user has many objects, such as sent emails. They have no names that could
// conflict, so two workers apply them. A transaction applies five times as many lines as for other kinds.
func newHistory(r records.Kind) *kind {
	return &kind{Kind: r, rules: rule.Of(r.Type()), times: 5, workers: 2}
}

// kindNamed returns the kind whose name in lines is object; nil if there is none.
func kindNamed(object string) *kind {
	for _, k := range kinds {
		if k.Object() == object {
			return k
		}
	}
	return nil
}

// index returns the index of the kind in kinds.
func (k *kind) index() int { return slices.Index(kinds, k) }

// toStagedLine reads a line, and returns it for staging. The error says what is wrong with the line by itself.
func (k *kind) toStagedLine(text []byte, now time.Time) (records.StagedLine, error) {
	record, err := k.read(text, now)
	l := records.StagedLine{Text: string(text)}
	if err != nil {
		return l, err
	}
	// Lines of these kinds are applied client by client or user by user. records.StageRepeated needs Object to keep the
	// lines of one object in order. Other kinds are applied in the order of the input, and need none of these columns.
	switch r := record.(type) {
	case *domain.UserRecord:
		l.Object, l.ClientID = new(idOf(record)), &r.Client.Value.ID
	case *domain.ResultRecord:
		l.Object, l.UserID = new(idOf(record)), &r.User.Value.ID
	case *domain.SentEmailRecord:
		l.Object, l.UserID = new(idOf(record)), &r.User.Value.ID
	case *domain.TrainingRecord:
		l.UserID = &r.User.Value.ID // its id need not be that of an object
	}
	return l, nil
}

// readChecked reads a line that read has accepted before. It normalizes the texts again, but does not check the rules.
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
	if (rule.Reader{Skip: "object"}).Read(text, record, f) == nil { // not a JSON object
		return nil, errorOf(f)
	}
	if err := k.rules.Check(record, now, f); err != nil { // not a fault of the line: it could not be checked
		return nil, err
	}
	if u, ok := record.(*domain.UserRecord); ok && u.SendWelcomeEmail.Value {
		f.Add("send_welcome_email", "must be false, because an import sends no emails")
	}
	return record, errorOf(f)
}

// idOf returns the UUID of the object of a record, a pointer. That of a brand is its owner's.
func idOf(record any) [16]byte {
	if owned, ok := record.(interface{ Bytes() [16]byte }); ok {
		return owned.Bytes()
	}
	return reflect.ValueOf(record).Elem().FieldByName("ID").Interface().(interface{ Bytes() [16]byte }).Bytes()
}

// countItems returns the number of items in all lists of a record, a pointer to a struct whose fields are all structs.
func countItems(record any) (n int) {
	for _, field := range reflect.ValueOf(record).Elem().Fields() {
		if list := field.FieldByName("Value"); list.Kind() == reflect.Slice { // a domain.Optional of a list
			n += list.Len()
		}
	}
	return n
}
