package op

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"partnerapi/domain"
)

// cleaner brings a text of a body into the form that it is stored in.
type cleaner struct {
	index []int
	form  func(string) string
}

// cleanersOf returns the cleaners of a body's members: those with the rule name
// or email.
func cleanersOf(body reflect.Type, index []int) (list []cleaner) {
	if body.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(body) {
		rules := strings.Split(f.Tag.Get("validate"), ",")
		at := slices.Concat(index, f.Index)
		switch {
		case slices.Contains(rules, "email"):
			list = append(list, cleaner{at, cleanEmail})
		case slices.Contains(rules, "name") && slices.Contains(rules, "filled"):
			list = append(list, cleaner{at, unlessBlank})
		case slices.Contains(rules, "name"):
			list = append(list, cleaner{at, domain.CleanName})
		}
	}
	return list
}

// unlessBlank leaves a blank name as it is, for the rule filled to refuse.
func unlessBlank(text string) string {
	return cmp.Or(domain.CleanName(text), text)
}

// cleanEmail leaves what is no email address as it is, for the rule to refuse.
func cleanEmail(text string) string {
	if email, ok := domain.CleanEmail(text); ok {
		return email
	}
	return text
}

// clean brings the member of the input into its form. A pointer is replaced and
// not written through, as others may hold it too.
func (c cleaner) clean(input reflect.Value) {
	v := input.FieldByIndex(c.index)
	if _, ok := v.Interface().(optional); ok {
		v = v.FieldByName("Value")
	}
	if v.Kind() != reflect.Pointer {
		v.SetString(c.form(v.String()))
		return
	}
	if v.IsNil() {
		return
	}
	if text := v.Elem().String(); c.form(text) != text {
		v.Set(reflect.New(v.Type().Elem()))
		v.Elem().SetString(c.form(text))
	}
}
