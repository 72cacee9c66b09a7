package transfer

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// signalRules are the rules of signals. neededBySignals is true for fields that are required if a signal's type has
// them.
var (
	signalRules     = rule.Of(reflect.TypeFor[domain.Signal]())
	neededBySignals = func() map[string]bool {
		needed := map[string]bool{}
		for _, f := range reflect.VisibleFields(reflect.TypeFor[domain.Signal]()) {
			needed[rule.WireName(f)] = f.Tag.Get("rule") == "new"
		}
		return needed
	}()
)

// readSignal reads a signal from a line of JSON, and checks it as of now. A field that is null counts as absent. It cuts
// the subject and the sender of a reported email, which are as long as senders like. The error says what is wrong with the line: it breaks a rule, has a field that the signal's type does not have, or lacks
// a required field.
func readSignal(line []byte, now time.Time) (s domain.Signal, err error) {
	f := &rule.Faults{}
	given := rule.Reader{NullIsAbsent: true, UUIDs: true}.Read(line, &s, f)
	if given == nil {
		return s, errorOf(f)
	}
	maps.DeleteFunc(given, func(_ string, isGiven bool) bool { return !isGiven }) // the nulls

	fields := s.Type.Fields()
	for _, name := range fields {
		if neededBySignals[name] && !given[name] {
			f.Add(name, rule.Required)
		}
	}
	typeExists := rule.EnumHas(s.Type, string(s.Type)) // Check adds the fault if not
	names := slices.Sorted(maps.Keys(given))
	for _, name := range names {
		if typeExists && !slices.Contains(fields, name) {
			f.Add(name, "is not allowed if type is "+string(s.Type))
		}
	}
	if err := signalRules.Check(&s, now, f, append(names, "type")...); err != nil { // the given fields, and type
		return s, err // not a fault of the line: it could not be checked
	}
	s.Subject, s.Sender = domain.Cut(s.Subject, domain.MaxReported), domain.Cut(s.Sender, domain.MaxReported)
	return s, errorOf(f)
}
