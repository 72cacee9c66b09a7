package transfer

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// signalRules are the rules of signals; neededBySignals says which fields are required if a signal's type has them.
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

// readSignal reads a line of JSON, as of now. A null is a field that is left out. The
// error says what is wrong with the line.
func readSignal(line []byte, now time.Time) (s domain.Signal, err error) {
	f := &rule.Faults{}
	given := rule.Reader{NullIsAbsent: true}.Read(line, &s, f)
	if given == nil {
		return s, errorOf(f)
	}
	maps.DeleteFunc(given, func(_ string, is bool) bool { return !is })

	fields := s.Type.Fields()
	for _, name := range fields {
		if neededBySignals[name] && !given[name] {
			f.Add(name, rule.Required)
		}
	}
	names := slices.Sorted(maps.Keys(given))
	for _, name := range names {
		if rule.EnumHas(s.Type, string(s.Type)) && !slices.Contains(fields, name) {
			f.Add(name, "is not taken when type is "+string(s.Type))
		}
	}
	if err := signalRules.Check(&s, now, f, append(names, "type")...); err != nil {
		return s, err
	}
	return s, errorOf(f)
}
