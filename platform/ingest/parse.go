package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
)

const (
	maxText    = 255 // characters of an id, a name or a data class
	maxClasses = 100
	maxLong    = 500 // characters of a Message-ID, a subject or a sender
)

// field is a field of a line: how it is read, and whether it may be left out.
type field struct {
	name     string
	optional bool
	read     func(*domain.Signal, jsontext.Value) error
}

// fieldsOf are the fields of each type beside id, type and at (decisions 7.9).
var fieldsOf = map[domain.SignalType][]field{
	domain.PhishingOpened:       {result},
	domain.PhishingClicked:      {result},
	domain.PhishingReported:     {result},
	domain.CredentialsSubmitted: {result},
	domain.AttachmentOpened:     {result},
	domain.CourseStarted:        {user, course},
	domain.CourseCompleted:      {user, course},
	domain.PolicySigned:         {user, policy, version},
	domain.PolicyPublished:      {policy},
	domain.ExposureFound:        {user, breach, severity, dataClasses},
	domain.ExposureResolved:     {user, breach},
	domain.EmailReported:        {user, subject, sender, message},
	domain.EmailClassified:      {message, classification, mailboxAction, client},
}

var (
	result = field{name: "result_id", read: func(s *domain.Signal, v jsontext.Value) error {
		return readID(v, &s.Result)
	}}
	user = field{name: "user_id", read: func(s *domain.Signal, v jsontext.Value) error {
		return readID(v, &s.User)
	}}
	course = field{name: "course_id", read: func(s *domain.Signal, v jsontext.Value) error {
		return readID(v, &s.Course)
	}}
	policy = field{name: "policy_id", read: func(s *domain.Signal, v jsontext.Value) error {
		return readID(v, &s.Policy)
	}}
	version = field{name: "version", read: readVersion}
	breach  = field{name: "breach_name", read: func(s *domain.Signal, v jsontext.Value) (err error) {
		s.Breach, err = readText(v)
		return err
	}}
	message = field{name: "message_id", read: func(s *domain.Signal, v jsontext.Value) error {
		text, err := readUpTo(v, maxLong)
		s.Message = domain.MessageKey(text)
		if err == nil && s.Message == "" {
			err = errors.New("is empty")
		}
		return err
	}}
	subject = field{name: "subject", read: func(s *domain.Signal, v jsontext.Value) (err error) {
		s.Subject, err = readUpTo(v, maxLong)
		return err
	}}
	sender = field{name: "sender", read: func(s *domain.Signal, v jsontext.Value) (err error) {
		s.Sender, err = readUpTo(v, maxLong)
		return err
	}}
	client = field{name: "client_id", optional: true, read: func(s *domain.Signal, v jsontext.Value) error {
		if err := readID(v, &s.Client); err != nil || !s.Client.IsZero() {
			return err
		}
		return unknownError{s.Client.Noun()} // the zero id stands for all clients
	}}
	classification = field{name: "classification", read: func(s *domain.Signal, v jsontext.Value) (err error) {
		s.Classification.Class, err = readOneOf[domain.EmailClass](v, domain.SentClasses())
		return err
	}}
	mailboxAction = field{name: "mailbox_action", optional: true, read: func(s *domain.Signal, v jsontext.Value) (err error) {
		s.Classification.Action, err = readOneOf[domain.MailboxAction](v, domain.MailboxAction("").Values())
		return err
	}}
	severity    = field{name: "severity", optional: true, read: readSeverity}
	dataClasses = field{name: "data_classes", optional: true, read: readClasses}
)

// Parse reads a line of JSON. latest is the last moment that a signal may be
// of. The error says what is wrong with the line, in the terms of its fields;
// an id that no object can have is that of an unknown one.
func Parse(line []byte, latest time.Time) (domain.Signal, error) {
	var given map[string]jsontext.Value
	if err := json.Unmarshal(line, &given); err != nil || given == nil {
		var bad *jsontext.SyntacticError
		if errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &bad) {
			return domain.Signal{}, fmt.Errorf("has the field %.40q twice", bad.JSONPointer.LastToken())
		}
		return domain.Signal{}, errors.New("is not a JSON object")
	}
	var s domain.Signal
	if err := readHead(&s, given, latest); err != nil {
		return s, err
	}
	for _, f := range fieldsOf[s.Type] {
		if err := f.take(&s, given); err != nil {
			return s, err
		}
	}
	if len(given) > 0 {
		names := slices.Sorted(maps.Keys(given))
		return s, fmt.Errorf("has fields that are not %s's: %s", s.Type, strings.Join(quoted(names), ", "))
	}
	return s, nil
}

// readHead takes what every signal has. The type comes first: what else is
// right depends on it.
func readHead(s *domain.Signal, given map[string]jsontext.Value, latest time.Time) error {
	for _, f := range []field{
		{name: "type", read: func(s *domain.Signal, v jsontext.Value) error {
			text, err := readText(v)
			if err != nil {
				return err
			}
			s.Type = domain.SignalType(text)
			if fieldsOf[s.Type] == nil {
				return fmt.Errorf("%q is unknown", text)
			}
			return nil
		}},
		{name: "id", read: func(s *domain.Signal, v jsontext.Value) (err error) { s.ID, err = readText(v); return err }},
		{name: "at", read: func(s *domain.Signal, v jsontext.Value) error { return readTime(s, v, latest) }},
	} {
		if err := f.take(s, given); err != nil {
			return err
		}
	}
	return nil
}

// unknownError marks an id that no object can have.
type unknownError struct{ noun string }

func (e unknownError) Error() string { return domain.NoSuchObject(e.noun) }

// take reads the field and takes it out of what is given. A null is a field
// that is left out.
func (f field) take(s *domain.Signal, given map[string]jsontext.Value) error {
	value, ok := given[f.name]
	delete(given, f.name)
	if !ok || value.Kind() == 'n' {
		if f.optional {
			return nil
		}
		return fmt.Errorf("%s is missing", f.name)
	}
	err := f.read(s, value)
	if unknown := (unknownError{}); err == nil || errors.As(err, &unknown) {
		return err
	}
	return fmt.Errorf("%s: %w", f.name, err)
}

// readText reads a text of 1 to maxText characters that a database can hold.
func readText(v jsontext.Value) (string, error) {
	text, err := readUpTo(v, math.MaxInt)
	if n := utf8.RuneCountInString(text); err == nil && (n == 0 || n > maxText) {
		err = fmt.Errorf("does not have 1 to %d characters", maxText)
	}
	return text, err
}

// readUpTo reads a text of up to n characters, which may be empty.
func readUpTo(v jsontext.Value, n int) (text string, err error) {
	switch err := json.Unmarshal(v, &text); {
	case err != nil:
		return "", errors.New("must be a string")
	case utf8.RuneCountInString(text) > n:
		return "", fmt.Errorf("has more than %d characters", n)
	case strings.ContainsRune(text, 0):
		return "", errors.New("holds a NUL character")
	}
	return text, nil
}

func readID[K domain.Kind](v jsontext.Value, id *domain.ID[K]) error {
	var text string
	if err := json.Unmarshal(v, &text); err != nil {
		return errors.New("must be a string")
	}
	if err := id.UnmarshalText([]byte(text)); err != nil {
		return unknownError{id.Noun()}
	}
	return nil
}

func readTime(s *domain.Signal, v jsontext.Value, latest time.Time) error {
	text, err := readText(v)
	if err != nil {
		return err
	}
	at, err := domain.ParseTime(text)
	if err != nil {
		return fmt.Errorf("must be a time such as 2026-01-31T08:00:00Z, not %q", text)
	}
	if at.After(latest) {
		return fmt.Errorf("%s is more than %d minutes ahead", text, int(domain.SignalLead.Minutes()))
	}
	if at.Unix() < 0 {
		return fmt.Errorf("%s is before 1970", text)
	}
	s.At = at.Truncate(time.Microsecond)
	return nil
}

func readVersion(s *domain.Signal, v jsontext.Value) error {
	var n int32
	if err := json.Unmarshal(v, &n); err != nil || n < 1 {
		return fmt.Errorf("must be a whole number from 1 to %d", math.MaxInt32)
	}
	s.Version = int(n)
	return nil
}

func readSeverity(s *domain.Signal, v jsontext.Value) error {
	var err error
	s.Severity, err = readOneOf[domain.Severity](v, domain.SeverityLow.Values())
	return err
}

func readOneOf[T ~string](v jsontext.Value, all []string) (T, error) {
	text, err := readText(v)
	if err == nil && !slices.Contains(all, text) {
		err = fmt.Errorf("%q is none of %s", text, strings.Join(all, ", "))
	}
	return T(text), err
}

func readClasses(s *domain.Signal, v jsontext.Value) error {
	wrong := fmt.Errorf("is not a list of 1 to %d texts", maxClasses)
	list := jsontext.NewDecoder(bytes.NewReader(v))
	if begin, err := list.ReadToken(); err != nil || begin.Kind() != '[' {
		return wrong
	}
	for list.PeekKind() != ']' {
		item, err := list.ReadValue()
		if err != nil || len(s.DataClasses) == maxClasses {
			return wrong
		}
		class, err := readText(item)
		if err != nil {
			return fmt.Errorf("[%d] %w", len(s.DataClasses), err)
		}
		s.DataClasses = append(s.DataClasses, class)
	}
	if len(s.DataClasses) == 0 {
		return wrong
	}
	return nil
}

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%.40q", n)
	}
	return out
}
