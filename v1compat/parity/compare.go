package parity

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// verdict is how two items compare: how many values are equal, and how many are not
// for a reason that is known; and those that differ.
type verdict struct {
	equal, explained int
	faults           []fault
	// within are v1's ids of the elements of arrays that faults are in, by the fields of
	// those; nil where none is in one with an id.
	within map[string]string
}

// fault is a value that differs. A side without the value has nil.
type fault struct {
	field  string
	v1, v2 jsontext.Value
}

// check adds a value that is to be equal to another one.
func (v *verdict) check(f fault) {
	if string(f.v1) == string(f.v2) {
		v.equal++
	} else {
		v.faults = append(v.faults, f)
	}
}

// faulty is the verdict that one value differs.
func faulty(field string, v1, v2 jsontext.Value) verdict {
	return verdict{faults: []fault{{field, v1, v2}}}
}

// rules say which values may differ.
type rules struct {
	// explained are members of the items whose values may differ: v2 has none for
	// them. Their types must be right nonetheless.
	explained []string
	// tolerated are members, at whatever depth, whose values may differ.
	tolerated []string
	// apart says that the sides are two services: their addresses of files may differ in
	// the host.
	apart bool
}

// compare compares what v1 says with what it is to say.
func (r rules) compare(v1, expected jsontext.Value) verdict {
	var v verdict
	r.walk(&v, "", v1, expected)
	return v
}

// content is what two items that differ in nothing but what the rules explain both say:
// the other members, by their names.
func (r rules) content(item jsontext.Value) string {
	all, err := members(item)
	if err != nil {
		return string(item)
	}
	maps.DeleteFunc(all, func(name string, _ jsontext.Value) bool {
		return slices.Contains(r.explained, name) || slices.Contains(r.tolerated, name)
	})
	return string(valueOf(all))
}

func (r rules) walk(v *verdict, field string, got, want jsontext.Value) {
	g, w := parts(field, got), parts(field, want)
	if g == nil || w == nil || got.Kind() != want.Kind() {
		r.leaf(v, field, got, want)
		return
	}
	if len(g) == 0 && len(w) == 0 {
		v.equal++
	}
	all := maps.Clone(w)
	maps.Copy(all, g)
	for _, at := range slices.Sorted(maps.Keys(all)) {
		before := len(v.faults)
		switch _, shown := g[at]; {
		case shown && w[at] != nil:
			r.walk(v, at, g[at], w[at])
		case slices.Contains(r.tolerated, last(at)):
			v.explained++
		default:
			v.faults = append(v.faults, fault{at, g[at], w[at]})
		}
		if got.Kind() == '[' {
			v.note(v.faults[before:], cmp.Or(memberOf(g[at], "id"), memberOf(w[at], "id")))
		}
	}
}

// note notes that faults are in the element of an array with an id; empty for one without.
func (v *verdict) note(faults []fault, id string) {
	for _, f := range faults {
		if v.within == nil {
			v.within = map[string]string{}
		}
		v.within[f.field] = cmp.Or(v.within[f.field], id)
	}
}

// parts are the members of an object, or the elements of an array, by their paths; nil of
// another value.
func parts(field string, v jsontext.Value) map[string]jsontext.Value {
	if v.Kind() == '{' {
		all, err := members(v)
		if err != nil || field == "" {
			return all
		}
		parts := map[string]jsontext.Value{}
		for name, value := range all {
			parts[field+"."+name] = value
		}
		return parts
	}
	var elements []jsontext.Value
	if v.Kind() != '[' || json.Unmarshal(v, &elements) != nil {
		return nil
	}
	parts := map[string]jsontext.Value{}
	for i, element := range elements {
		parts[orWhole(field)+"["+strconv.Itoa(i)+"]"] = element
	}
	return parts
}

// last is the last name of a path.
func last(field string) string { return field[strings.LastIndexByte(field, '.')+1:] }

// leaf compares two values of which not both are objects, or both arrays.
func (r rules) leaf(v *verdict, field string, got, want jsontext.Value) {
	same, alike := string(got) == string(want), unnumbered(want)
	if last(field) == "download_link" {
		gotFile, gotQuery := r.fileOf(got)
		wantFile, wantQuery := r.fileOf(want)
		alike = gotFile == wantFile
		same = same || alike && gotQuery == wantQuery
	}
	explained := slices.Contains(r.explained, field)
	switch {
	case same && !explained:
		v.equal++
	case same, slices.Contains(r.tolerated, last(field)), kindOf(got) == kindOf(want) && (alike || explained):
		v.explained++
	default:
		v.faults = append(v.faults, fault{orWhole(field), got, want})
	}
}

// fileOf is what an address leads to, and its query, which signs it. A service that serves
// its own files has the object's name in the query.
func (r rules) fileOf(v jsontext.Value) (file, query string) {
	at, err := url.Parse(unquoted(v))
	if err != nil {
		return string(v), ""
	}
	query = at.RawQuery
	if r.apart {
		at.Scheme, at.Host = "", ""
	}
	object := at.Query().Get("obj")
	at.RawQuery = ""
	return at.String() + " " + object, query
}

// kindOf is a value's kind; true and false are one.
func kindOf(v jsontext.Value) jsontext.Kind {
	if k := v.Kind(); k != 'f' {
		return k
	}
	return 't'
}

// unnumbered reports whether a value is the number of an object that the exchange has
// no number for: one that was deleted.
func unnumbered(v jsontext.Value) bool { return string(v) == "-1" }

// members are the members of an object, each without white space.
func members(v jsontext.Value) (map[string]jsontext.Value, error) {
	all := map[string]jsontext.Value{}
	if err := json.Unmarshal(v, &all); err != nil {
		return nil, err
	}
	for name, value := range all {
		if err := value.Compact(); err != nil {
			return nil, err
		}
		all[name] = value
	}
	return all, nil
}

// orWhole names the whole of an answer.
func orWhole(field string) string { return cmp.Or(field, "(body)") }

// memberOf is the text of a member of an object; empty where there is none.
func memberOf(object jsontext.Value, name string) string {
	all, err := members(object)
	if err != nil {
		return ""
	}
	return unquoted(all[name])
}

// unquoted is the text of a value.
func unquoted(value jsontext.Value) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}
