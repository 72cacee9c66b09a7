package transfer

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"

	"partnerapi/domain/rule"
)

// maxFaults is the maximum number of faults in the error of a line.
const maxFaults = 10

// errorOf returns an error with the first faults of a line; nil without faults. A fault of the whole line has no field.
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

// kindOf returns the kind of object of a line. The error says what is wrong with the line: it is too long or malformed,
// or its object is missing or unknown.
func kindOf(in *inputLine) (*kind, error) {
	if in.fault != nil {
		return nil, in.fault
	}
	if in.tooLong {
		return nil, errTooLong
	}
	// Most lines begin with the object: it is then read without parsing the line, which kind.read does later.
	if rest, ok := bytes.CutPrefix(in.text, []byte(`{"object":"`)); ok {
		name, _, closed := bytes.Cut(rest, []byte(`"`))
		if k := kindNamed(string(name)); k != nil && closed {
			return k, nil
		}
	}
	var head struct {
		Object objectName `json:"object"`
	}
	f := &rule.Faults{}
	rule.Reader{Lenient: true}.Read(in.text, &head, f) // it ignores other members
	k := kindNamed(string(head.Object))
	switch {
	case len(f.List()) > 0: // malformed
	case head.Object == "":
		f.Add("object", rule.Required)
	case k == nil:
		f.Add("object", rule.EnumMessage(head.Object))
	}
	return k, errorOf(f)
}

// objectName is the name of a kind of objects in lines (see kind.Object).
type objectName string

// Values returns the names of the kinds that have lines. users.then has none: it applies a part of the lines of users.
func (objectName) Values() (names []string) {
	for _, k := range kinds {
		if k != users.then {
			names = append(names, k.Object())
		}
	}
	return names
}

// lineOptions are the JSON options of lines: a field of a record that is not given is omitted.
var lineOptions = json.JoinOptions(
	json.Deterministic(true), json.OmitZeroStructFields(true), json.WithMarshalers(rule.MarshalOptionals))

// appendRecord appends a record, a pointer, to line as a line with its line end.
func (k *kind) appendRecord(line []byte, record any) ([]byte, error) {
	text, err := json.Marshal(record, lineOptions)
	if err != nil {
		return line, err
	}
	line = append(line, `{"object":"`+k.Object()+`",`...)
	return append(append(line, text[1:]...), '\n'), nil // without text's brace; text has an id, or an owner
}
