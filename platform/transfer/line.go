package transfer

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"

	"partnerapi/domain/rule"
)

// maxFaults is how many faults of a line are reported.
const maxFaults = 10

// errorOf returns what is wrong with a line; nil for nothing.
func errorOf(f *rule.Faults) error {
	var texts []string
	for _, fault := range f.List() {
		texts = append(texts, strings.TrimPrefix(fault.Field+" "+fault.Message, rule.Whole+" "))
	}
	if texts == nil {
		return nil
	}
	return errors.New(strings.Join(texts[:min(len(texts), maxFaults)], "; "))
}

// kindOf returns the kind of object of a line. The error says what is wrong with the line.
func kindOf(in *inputLine) (*kind, error) {
	if in.tooLong {
		return nil, errTooLong
	}
	if rest, first := bytes.CutPrefix(in.text, []byte(`{"object":"`)); first { // where most lines have it
		name, _, ended := bytes.Cut(rest, []byte(`"`))
		if k := kindCalled(string(name)); k != nil && ended {
			return k, nil // the kind says what is wrong with the rest
		}
	}
	var head struct {
		Object objectName `json:"object"`
	}
	f := &rule.Faults{}
	rule.Reader{Lenient: true}.Read(in.text, &head, f)
	k := kindCalled(string(head.Object))
	switch {
	case len(f.List()) > 0:
	case head.Object == "":
		f.Add("object", rule.Required)
	case k == nil:
		f.Add("object", rule.EnumMessage(head.Object))
	}
	return k, errorOf(f)
}

// objectName is the name of a kind of objects in lines.
type objectName string

// Values lists the names.
func (objectName) Values() (names []string) {
	for _, k := range kinds {
		if k != users.then {
			names = append(names, k.object)
		}
	}
	return names
}

// append appends a record as a line with its end.
func (p *plan) append(line []byte, of any) ([]byte, error) {
	record := reflect.ValueOf(of).Elem()
	line = append(line, `{"object":"`+p.object+`","id":`...)
	id, err := json.Marshal(record.Field(p.id).Interface())
	if err != nil {
		return line, err
	}
	line = append(line, id...)
	for i := range p.fields {
		f := &p.fields[i]
		s := f.value(record)
		if s.IsZero() {
			continue
		}
		line = append(line, `,"`+f.name+`":`...)
		text, err := json.Marshal(s.Pointer(), json.Deterministic(true))
		if err != nil {
			return line, err
		}
		line = append(line, text...)
	}
	return append(line, '}', '\n'), nil
}
