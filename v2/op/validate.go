package op

import (
	"reflect"
	"time"

	"partnerapi/domain/rule"
)

// MaxBody is the largest body that is read, in bytes (decisions 2.5).
const MaxBody = 1 << 20

// Validate brings the names and emails of an input into their stored form, checks the input against its tags, and
// checks that a PATCH has at least one member. The error is InvalidRequest, and names every field that is wrong.
func (in *Input) Validate(input any) error {
	f := &rule.Faults{}
	if err := in.check(input, f); err != nil {
		return err
	}
	return f.Err()
}

// check brings names and emails into their stored form, and adds broken rules of tags and an empty PATCH to the faults
// that f holds already. It names no field twice, and none inside a value that could not be decoded. An error means that
// the input could not be checked.
func (in *Input) check(input any, f *rule.Faults) error {
	if err := in.rules.Check(input, time.Time{} /* now: no input has the rule past */, f); err != nil {
		return err
	}
	// With faults, a member may be given but invalid.
	if len(f.List()) == 0 && isEmptyPatch(reflect.ValueOf(input).Elem()) {
		f.Add("body", "must name at least one field to change")
	}
	return nil
}

// isEmptyPatch reports whether the body consists of Optionals, none of which is given.
func isEmptyPatch(input reflect.Value) bool {
	body := input.FieldByName("Body")
	if !body.IsValid() || body.Kind() != reflect.Struct {
		return false
	}
	for i := range body.NumField() {
		if p, ok := body.Field(i).Interface().(rule.Optional); !ok || !p.IsZero() {
			return false
		}
	}
	return body.NumField() > 0
}
