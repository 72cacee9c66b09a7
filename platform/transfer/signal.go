package transfer

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
)

// signalFields are the fields of each type of signals, beside type, id and at
// (decisions 7.9), in the order in which they are judged. What holds for them is declared
// by domain.Signal.
var signalFields = map[domain.SignalType][]string{
	domain.PhishingOpened:       {"result_id"},
	domain.PhishingClicked:      {"result_id"},
	domain.PhishingReported:     {"result_id"},
	domain.CredentialsSubmitted: {"result_id"},
	domain.AttachmentOpened:     {"result_id"},
	domain.CourseStarted:        {"user_id", "course_id"},
	domain.CourseCompleted:      {"user_id", "course_id"},
	domain.PolicySigned:         {"user_id", "policy_id", "version"},
	domain.PolicyPublished:      {"policy_id"},
	domain.ExposureFound:        {"user_id", "breach_name", "severity", "data_classes"},
	domain.ExposureResolved:     {"user_id", "breach_name"},
	domain.EmailReported:        {"user_id", "subject", "sender", "message_id"},
	domain.EmailClassified:      {"message_id", "classification", "mailbox_action", "client_id"},
}

// signalField is a field of domain.Signal, with its rules.
type signalField struct {
	field
	index []int
}

// fieldsOfSignals are the fields of domain.Signal by their names.
var fieldsOfSignals = func() map[string]*signalField {
	fields := map[string]*signalField{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[domain.Signal]()) {
		if name := f.Tag.Get("record"); name != "" {
			fields[name] = &signalField{fieldOf(name, 0, f.Tag.Get("rule")), f.Index}
		}
	}
	return fields
}()

// readSignal reads a line of JSON. latest is the last moment that a signal may be
// of. The error says what is wrong with the line first, in the terms of its fields;
// an id that no object can have is that of an unknown one.
func readSignal(line []byte, latest time.Time) (s domain.Signal, err error) {
	var given map[string]jsontext.Value
	switch err := json.Unmarshal(line, &given); {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return s, lineError(err)
	case err != nil || given == nil:
		return s, errNotObject
	}

	signal := reflect.ValueOf(&s).Elem()
	for _, name := range []string{"type", "id", "at"} { // what else is right depends on the type
		if err := fieldsOfSignals[name].set(signal, given, latest); err != nil {
			return s, err
		}
	}
	for _, name := range signalFields[s.Type] {
		if err := fieldsOfSignals[name].set(signal, given, latest); err != nil {
			return s, err
		}
	}
	if len(given) > 0 {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(given)) {
			names = append(names, fmt.Sprintf("%.40q", name))
		}
		return s, fmt.Errorf("has fields that are not %s's: %s", s.Type, strings.Join(names, ", "))
	}
	return s, nil
}

// set reads the field of a signal and takes it out of what is given. A null is
// a field that is left out.
func (f *signalField) set(signal reflect.Value, given map[string]jsontext.Value, latest time.Time) error {
	value, ok := given[f.name]
	delete(given, f.name)
	if !ok || value.Kind() == 'n' {
		if f.needed {
			return fmt.Errorf("%s is missing", f.name)
		}
		return nil
	}
	err := f.read(signal.FieldByIndex(f.index).Addr().Interface(), value, latest)
	if unknown := (unknownError{}); err == nil || errors.As(err, &unknown) {
		return err
	}
	return fmt.Errorf("%s: %w", f.name, err)
}

// unknownError marks an id that no object can have.
type unknownError struct{ noun string }

func (e unknownError) Error() string { return domain.NoSuchObject(e.noun) }

// anyID is a pointer to any domain.ID.
type anyID interface {
	encoding.TextUnmarshaler
	Noun() string
	IsZero() bool
}

// read reads a value of the field, and says what is wrong with it by the field's
// rules and its type.
func (f *signalField) read(into any, value jsontext.Value, latest time.Time) (err error) {
	switch into := into.(type) {
	case *int:
		if json.Unmarshal(value, into) != nil || *into < *f.min || *into > *f.max {
			return fmt.Errorf("must be a whole number from %d to %d", *f.min, *f.max)
		}
		return nil
	case *[]string:
		*into, err = f.readTexts(value)
		return err
	}

	text, err := f.readText(value)
	if err != nil {
		return err
	}
	switch into := into.(type) {
	case *string:
		*into = text
		if f.name == "message_id" {
			*into = domain.MessageKey(text)
			if *into == "" {
				return errors.New("is empty")
			}
		}
		return nil
	case *time.Time:
		*into, err = signalTime(text, latest)
		return err
	case anyID:
		if into.UnmarshalText([]byte(text)) != nil || into.IsZero() {
			return unknownError{into.Noun()}
		}
		return nil
	case *domain.SignalType:
		if *into = domain.SignalType(text); signalFields[*into] == nil {
			return fmt.Errorf("%q is unknown", text)
		}
		return nil
	}
	return readOneOf(into.(enum), text)
}

// readText reads a text that a database can hold.
func (f *field) readText(value jsontext.Value) (text string, err error) {
	if json.Unmarshal(value, &text) != nil {
		return "", errors.New("must be a string")
	}
	n := utf8.RuneCountInString(text)
	switch {
	case strings.ContainsRune(text, 0):
		return "", errors.New("holds a NUL character")
	case f.filled && (n == 0 || n > *f.max):
		return "", fmt.Errorf("does not have 1 to %d characters", *f.max)
	case f.max != nil && n > *f.max:
		return "", fmt.Errorf("has more than %d characters", *f.max)
	}
	return text, nil
}

func signalTime(text string, latest time.Time) (time.Time, error) {
	at, err := domain.ParseTime(text)
	switch {
	case err != nil:
		return at, fmt.Errorf("must be a time such as 2026-01-31T08:00:00Z, not %q", text)
	case at.After(latest):
		return at, fmt.Errorf("%s is more than %d minutes ahead", text, int(domain.SignalLead.Minutes()))
	case at.Unix() < 0:
		return at, fmt.Errorf("%s is before 1970", text)
	}
	return at.Truncate(time.Microsecond), nil
}

// readOneOf sets a value of a list, which into points to.
func readOneOf(into enum, text string) error {
	all := into.Values()
	if _, ok := into.(*domain.EmailClass); ok {
		all = domain.SentClasses()
	}
	if !slices.Contains(all, text) {
		return fmt.Errorf("%q is none of %s", text, strings.Join(all, ", "))
	}
	reflect.ValueOf(into).Elem().SetString(text)
	return nil
}

// readTexts reads a list of texts.
func (f *field) readTexts(value jsontext.Value) (list []string, err error) {
	var items []jsontext.Value
	if json.Unmarshal(value, &items) != nil || len(items) == 0 || len(items) > *f.max {
		return nil, fmt.Errorf("is not a list of 1 to %d texts", *f.max)
	}
	for i, item := range items {
		text, err := listItem.readText(item)
		if err != nil {
			return nil, fmt.Errorf("[%d] %w", i, err)
		}
		list = append(list, text)
	}
	return list, nil
}
