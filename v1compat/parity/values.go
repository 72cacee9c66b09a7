package parity

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/v1compat"
)

// finding is the result of comparing one subject: how many values are equal, how many
// differ for a reason that the migration guide gives, and the mismatches.
type finding struct {
	equal, explained int
	mismatches       []pair
	object           Object // whose values they are
	row              string
	answers          []answer // that show them
	unsettled        bool
	confirmed        int // readings in a row that had the same mismatches
}

// pair is a value of each side, which may be equal, and is a mismatch if it differs. A side without the value has nil.
type pair struct {
	field  string
	v1, v2 jsontext.Value
	object Object // whose value it is; zero means the finding's
}

// mismatched returns the finding that one value differs.
func mismatched(field string, v1, v2 jsontext.Value, answers ...answer) finding {
	return finding{mismatches: []pair{{field: field, v1: v1, v2: v2}}, answers: answers}
}

func (f finding) differs() bool { return len(f.mismatches) > 0 }

// check counts a value as equal if ok, otherwise adds a mismatch.
func (f *finding) check(field string, v1, v2 jsontext.Value, ok bool) {
	if ok {
		f.equal++
	} else {
		f.mismatches = append(f.mismatches, pair{field: field, v1: v1, v2: v2})
	}
}

// checkAnswer is check for one answer, of either version: got is the response's value, and want the value that it must
// have. In the mismatch, got is the value of the response's version, and want that of the other.
func (f *finding) checkAnswer(a answer, field string, got, want jsontext.Value, ok bool) {
	if strings.HasPrefix(a.path, "/v2/") {
		got, want = want, got // check takes the value of v1 first
	}
	f.check(field, got, want, ok)
}

// rules say which values may differ.
type rules struct {
	// explained are members of items that may differ in value, but not in type: v2 has no value for them.
	explained []string
	// tolerated are members, at any depth, that may differ.
	tolerated []string
	// element is the kind of the objects in the arrays of an item; empty for none.
	element string
	// twoServices lets addresses of files differ in their host.
	twoServices bool
}

// compare compares an item of v1 with the value that it must equal. answers are the responses that hold the two.
func (r rules) compare(v1, want jsontext.Value, answers ...answer) finding {
	f := finding{answers: answers}
	r.walk(&f, pair{v1: v1, v2: want})
	return f
}

// walk compares the two values of p. Of two objects or two arrays it compares part by part; two empty ones are one
// equal value. A part that one side lacks is a mismatch, unless the rules tolerate it.
func (r rules) walk(f *finding, p pair) {
	v1, v2 := parts(p.field, p.v1), parts(p.field, p.v2)
	if v1 == nil || v2 == nil || p.v1.Kind() != p.v2.Kind() {
		r.compareLeaf(f, p)
		return
	}
	if len(v1) == 0 && len(v2) == 0 {
		f.equal++
	}
	all := maps.Clone(v2)
	maps.Copy(all, v1)
	for _, field := range slices.Sorted(maps.Keys(all)) {
		part := pair{field, v1[field], v2[field], p.object}
		if p.v1.Kind() == '[' && r.element != "" {
			if id := cmp.Or(memberOf(part.v1, "id"), memberOf(part.v2, "id")); id != "" { // its own object
				part.object = Object{Kind: r.element, V1: id}
			}
		}
		switch {
		case part.v1 != nil && part.v2 != nil:
			r.walk(f, part)
		case slices.Contains(r.tolerated, lastName(field)):
			f.explained++
		default:
			f.mismatches = append(f.mismatches, part)
		}
	}
}

// compareLeaf compares two values of which at least one is neither an object nor an array. A difference is explained if
// the rules tolerate it. If both values have the same JSON type, it is also explained if the rules explain it, if v2's
// object has no number, or if only the queries of links differ. A value that the rules explain never counts as equal.
func (r rules) compareLeaf(f *finding, p pair) {
	name := lastName(p.field)
	same := string(p.v1) == string(p.v2)
	alike := string(p.v2) == noNumber // v1 may have any number then
	if name == "download_link" {
		v1, v1Query := r.splitLink(p.v1)
		v2, v2Query := r.splitLink(p.v2)
		alike = v1 == v2
		same = same || alike && v1Query == v2Query
	}
	explained := slices.Contains(r.explained, p.field)
	switch {
	case same && !explained:
		f.equal++
	case same, slices.Contains(r.tolerated, name), kindOf(p.v1) == kindOf(p.v2) && (alike || explained):
		f.explained++
	default:
		p.field = cmp.Or(p.field, wholeBody)
		f.mismatches = append(f.mismatches, p)
	}
}

// noNumber stands for the number of an object for which the exchange has none: a deleted one.
var noNumber = fmt.Sprint(v1compat.NoNumber)

// wholeBody is the field of a mismatch in a response as a whole.
const wholeBody = "(body)"

// splitLink splits the address of a file into what identifies the file, and the query, which has the signature. file is
// the address without the query and, between two services, without the host, followed by the query's obj: the object,
// in links to the service's own store. If the address is invalid, file is its JSON.
func (r rules) splitLink(v jsontext.Value) (file, query string) {
	link, err := url.Parse(textOf(v))
	if err != nil {
		return string(v), ""
	}
	query = link.RawQuery
	if r.twoServices {
		link.Scheme, link.Host = "", ""
	}
	object := link.Query().Get("obj")
	link.RawQuery = ""
	return link.String() + " " + object, query
}

// content returns the JSON of an item without the members that may differ.
func (r rules) content(item jsontext.Value) string {
	all := members(item)
	if all == nil {
		return string(item)
	}
	maps.DeleteFunc(all, func(name string, _ jsontext.Value) bool {
		return slices.Contains(r.explained, name) || slices.Contains(r.tolerated, name)
	})
	return string(valueOf(all))
}

// parts returns the members of an object or the elements of an array by their paths; nil for other values.
func parts(path string, v jsontext.Value) map[string]jsontext.Value {
	all := map[string]jsontext.Value{}
	switch object := members(v); {
	case object != nil:
		for name, value := range object {
			all[strings.TrimPrefix(path+"."+name, ".")] = value
		}
	case v.Kind() == '[':
		var elements []jsontext.Value
		if json.Unmarshal(v, &elements) != nil {
			return nil
		}
		for i, element := range elements {
			all[fmt.Sprintf("%s[%d]", cmp.Or(path, wholeBody), i)] = element
		}
	default:
		return nil
	}
	return all
}

// lastName returns the last name of a path.
func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// kindOf returns the kind of a value, which is the same for true and false.
func kindOf(v jsontext.Value) jsontext.Kind {
	if k := v.Kind(); k != 'f' {
		return k
	}
	return 't'
}

// members returns the members of an object, without white space; nil for other values.
func members(v jsontext.Value) (all map[string]jsontext.Value) {
	if json.Unmarshal(v, &all) != nil {
		return nil
	}
	for name, value := range all {
		if value.Compact() != nil {
			return nil
		}
		all[name] = value
	}
	return all
}

// memberOf returns the text of a member of an object; empty if there is none.
func memberOf(object jsontext.Value, name string) string { return textOf(members(object)[name]) }

// textOf returns the text of a string, or the JSON of another value.
func textOf(value jsontext.Value) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// valueOf returns the JSON of a value of this package.
func valueOf(value any) jsontext.Value {
	b, err := json.Marshal(value, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err)
	}
	return b
}
