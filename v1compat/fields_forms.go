package v1compat

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"partnerapi/domain"
)

// Form is what a value of v1 is to that of v2 beside it.
type Form string

// The forms. For a list they hold of each item.
const (
	// Equal values are the same JSON.
	Equal Form = "equal"
	// Number is an object's number in v1, and its id in v2.
	Number Form = "number"
	// NumberText is Number as a text.
	NumberText Form = "number text"
	// UUIDForm is an object's UUID in v1, and its id in v2.
	UUIDForm Form = "uuid"
	// Seconds is a time without the fraction of its second in v1.
	Seconds Form = "seconds"
	// Day is a time in v2, and a time or a day, for its start in UTC, in v1.
	Day Form = "day"
	// Mapped is a value of an enum, by Field.Values.
	Mapped Form = "mapped"
	// Presence is true in v1 unless v2 has null.
	Presence Form = "presence"
)

// forms are how the two texts of a value may be related, the first that holds of
// all marks being the one that counts.
var forms = []struct {
	form  Form
	holds func(v1, v2 string) bool
	// text explains the form, %s being what the ids look like.
	text string
}{
	{Equal, func(v1, v2 string) bool { return v1 == v2 }, ""},
	{Number, isNumber, "a number in v1, an id %s in v2"},
	{NumberText, isNumberText, "a number as text in v1, an id %s in v2"},
	{UUIDForm, isUUID, "a UUID in v1, an id %s in v2"},
	{Seconds, isSeconds, "whole seconds in v1, microseconds in v2"},
	{Day, isDay, "a time or a day in v1, which is its start in UTC; a time in v2"},
}

// idIn reads the id of whatever kind that a JSON text holds.
func idIn(text string) (id domain.UserID, prefix string, ok bool) {
	prefix, digits, ok := strings.Cut(strings.Trim(text, `"`), "_")
	if !ok {
		return id, "", false
	}
	id, err := domain.ParseID[domain.UserKind](domain.UserKind{}.Prefix() + "_" + digits)
	return id, prefix, err == nil
}

func isNumber(v1, v2 string) bool {
	id, _, ok := idIn(v2)
	return ok && v1 == strconv.Itoa(numberOf(id))
}

func isNumberText(v1, v2 string) bool {
	number, err := strconv.Unquote(v1)
	return err == nil && isNumber(number, v2)
}

func isUUID(v1, v2 string) bool {
	id, _, ok := idIn(v2)
	return ok && v1 == strconv.Quote(id.UUID())
}

func timeIn(layout, text string) (time.Time, bool) {
	t, err := time.Parse(layout, strings.Trim(text, `"`))
	return t, err == nil
}

func isSeconds(v1, v2 string) bool {
	a, okA := timeIn(time.RFC3339, v1)
	b, okB := timeIn(time.RFC3339, v2)
	return okA && okB && a.Equal(b.Truncate(time.Second))
}

func isDay(v1, v2 string) bool {
	day, ok := timeIn(time.DateOnly, v1)
	at, isTime := timeIn(time.RFC3339, v2)
	return v1 == v2 || ok && isTime && day.Equal(at)
}

// relation is how v1's texts of a field are made of v2's, or v2's of v1's.
type relation struct {
	form   Form
	values map[string]string // of Mapped: v1's texts by v2's, without quotes
	text   string
}

// sample is the two texts of a field in one trial.
type sample struct{ v1, v2 string }

// relate finds the form that holds of all samples, none of which is empty.
func relate(samples []sample, enum bool) (relation, bool) {
	for _, wrap := range []struct {
		open func(sample) ([]sample, bool)
		text string
	}{
		{func(s sample) ([]sample, bool) { return []sample{s}, true }, ""},
		{eachOf, ""},
		{onlyOf, "v2 takes a list"},
	} {
		inner, ok := opened(samples, wrap.open)
		if !ok {
			continue
		}
		for _, f := range forms {
			if slices.ContainsFunc(inner, func(s sample) bool { return !f.holds(s.v1, s.v2) }) {
				continue
			}
			text := f.text
			if strings.Contains(text, "%s") {
				text = fmt.Sprintf(text, prefixes(inner))
			}
			return relation{form: f.form, text: sentence(text, wrap.text)}, true
		}
	}
	if enum {
		return mapped(samples)
	}
	return relation{}, false
}

// prefixes are the prefixes of v2's ids.
func prefixes(samples []sample) string {
	var list []string
	for _, s := range samples {
		if _, prefix, ok := idIn(s.v2); ok {
			list = append(list, "`"+prefix+"_…`")
		}
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}

func opened(samples []sample, open func(sample) ([]sample, bool)) (list []sample, ok bool) {
	for _, s := range samples {
		inner, ok := open(s)
		if !ok {
			return nil, false
		}
		list = append(list, inner...)
	}
	return list, len(list) > 0
}

// eachOf pairs the items of two lists.
func eachOf(s sample) (list []sample, ok bool) {
	a, b := itemsOf(s.v1), itemsOf(s.v2)
	if a == nil || len(a) != len(b) {
		return nil, false
	}
	for i := range a {
		list = append(list, sample{string(a[i]), string(b[i])})
	}
	return list, true
}

// onlyOf pairs a value with the one item of a list.
func onlyOf(s sample) ([]sample, bool) {
	items := itemsOf(s.v2)
	if len(items) != 1 {
		return nil, false
	}
	return []sample{{s.v1, string(items[0])}}, true
}

func itemsOf(text string) (items []json.RawMessage) {
	if json.Unmarshal([]byte(text), &items) != nil {
		return nil
	}
	return items
}

// mapped reads a table off the samples of an enum, in which each text of v2 has one
// of v1.
func mapped(samples []sample) (relation, bool) {
	out := relation{form: Mapped, values: map[string]string{}}
	for _, s := range samples {
		v1, v2 := strings.Trim(s.v1, `"`), strings.Trim(s.v2, `"`)
		if other, ok := out.values[v2]; ok && other != v1 {
			return relation{}, false
		}
		out.values[v2] = v1
	}
	out.text = "`" + strings.Join(mapTexts(out.values), "; `")
	return out, true
}

// mapTexts are the lines of a table of values, by v1's.
func mapTexts(values map[string]string) (texts []string) {
	by := map[string][]string{}
	for _, v2 := range slices.Sorted(maps.Keys(values)) {
		by[values[v2]] = append(by[values[v2]], "`"+v2+"`")
	}
	for _, v1 := range slices.Sorted(maps.Keys(by)) {
		texts = append(texts, v1+"` for "+strings.Join(by[v1], ", "))
	}
	return texts
}

// sentence joins what is there of some texts.
func sentence(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "; ")
}

// isEmpty reports whether a text stands for no value.
func isEmpty(text string) bool { return text == null || text == "" || text == `""` }
