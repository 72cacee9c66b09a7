package parity

import (
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
}

// fault is a value that differs. A side without the value has nil.
type fault struct {
	field  string
	v1, v2 jsontext.Value
}

// rules say which values may differ.
type rules struct {
	// explained are members of the items whose values may differ: v2 has none for
	// them. Their types must be right nonetheless.
	explained []string
	// tolerated are members, at whatever depth, whose values may differ.
	tolerated []string
	// links are members whose addresses may differ in their query, which signs them; and
	// in their host where apart says that the sides are two services.
	links []string
	apart bool
}

// compare compares what v1 says with what it is to say.
func (r rules) compare(v1, expected jsontext.Value) verdict {
	var v verdict
	r.walk(&v, "", v1, expected)
	return v
}

func (r rules) walk(v *verdict, field string, got, want jsontext.Value) {
	switch {
	case got.Kind() == '{' && want.Kind() == '{':
		r.walkObject(v, field, got, want)
	case got.Kind() == '[' && want.Kind() == '[':
		r.walkArray(v, field, got, want)
	default:
		r.leaf(v, field, got, want)
	}
}

func (r rules) walkObject(v *verdict, field string, got, want jsontext.Value) {
	gotMembers, err := members(got)
	wantMembers, wrong := members(want)
	if err != nil || wrong != nil {
		v.faults = append(v.faults, fault{orWhole(field), got, want})
		return
	}
	names := maps.Clone(wantMembers)
	maps.Copy(names, gotMembers)
	if len(names) == 0 {
		v.equal++
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		g, shown := gotMembers[name]
		w, wanted := wantMembers[name]
		switch at := join(field, name); {
		case shown && wanted:
			r.walk(v, at, g, w)
		case slices.Contains(r.tolerated, name):
			v.explained++
		default:
			v.faults = append(v.faults, fault{at, g, w})
		}
	}
}

func (r rules) walkArray(v *verdict, field string, got, want jsontext.Value) {
	var g, w []jsontext.Value
	if json.Unmarshal(got, &g) != nil || json.Unmarshal(want, &w) != nil {
		v.faults = append(v.faults, fault{orWhole(field), got, want})
		return
	}
	if len(g) == 0 && len(w) == 0 {
		v.equal++
	}
	for i := range max(len(g), len(w)) {
		at := orWhole(field) + "[" + strconv.Itoa(i) + "]"
		switch {
		case i >= len(g):
			v.faults = append(v.faults, fault{at, nil, w[i]})
		case i >= len(w):
			v.faults = append(v.faults, fault{at, g[i], nil})
		default:
			r.walk(v, at, g[i], w[i])
		}
	}
}

// leaf compares two values of which not both are objects, or both arrays.
func (r rules) leaf(v *verdict, field string, got, want jsontext.Value) {
	name := field[strings.LastIndexByte(field, '.')+1:]
	same, alike := string(got) == string(want), false
	if slices.Contains(r.links, name) {
		g, w := linkOf(got, r.apart), linkOf(want, r.apart)
		same, alike = same || g == w, g.path == w.path
	}
	sameKind := kindOf(got) == kindOf(want)
	switch {
	case same && !slices.Contains(r.explained, field):
		v.equal++
	case same, slices.Contains(r.tolerated, name), sameKind && (alike || slices.Contains(r.explained, field) || unnumbered(want)):
		v.explained++
	default:
		v.faults = append(v.faults, fault{orWhole(field), got, want})
	}
}

// link is an address: what it leads to, and the rest of its query, which signs it. The
// object in the query of a service that serves its own files is part of the first.
type link struct{ path, signature string }

// linkOf reads an address; apart leaves scheme and host out. What is none is a path.
func linkOf(v jsontext.Value, apart bool) link {
	var address string
	if json.Unmarshal(v, &address) != nil {
		return link{path: string(v)}
	}
	at, err := url.Parse(address)
	if err != nil {
		return link{path: address}
	}
	if apart {
		at.Scheme, at.Host = "", ""
	}
	signature := at.RawQuery + "#" + at.Fragment
	file := at.Query().Get("obj")
	at.RawQuery, at.Fragment = "", ""
	return link{at.String() + " " + file, signature}
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

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// orWhole names the whole of an answer.
func orWhole(field string) string {
	if field == "" {
		return "(body)"
	}
	return field
}

// memberOf is the text of a member of an object; empty where there is none.
func memberOf(object jsontext.Value, name string) string {
	all, err := members(object)
	if err != nil {
		return ""
	}
	value := all[name]
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}
