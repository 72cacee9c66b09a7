package v1compat

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// A spot is where a value stands in what a translator reads: a member, a
// parameter, or a part that may be absent.
type spot struct {
	// path names the place as JSON does, [] standing for the items of a list; what
	// is outside JSON has the name of its Go field.
	path   string
	hidden bool // outside JSON
	enum   bool
	// marks are the values that are tried: the usual one first, the emptiest last.
	marks []probe
}

// A probe is a value that identifies its spot.
type probe struct {
	// text is the value as JSON; null where it is absent.
	text  string
	value reflect.Value // of a leaf
	size  int           // of a part: how many there are of it
}

// null is the text of what is absent.
const null = "null"

// marker fills values of one type with marks, one choice for each spot.
type marker struct {
	spots  []*spot
	byPath map[string]*spot
	// choice is the index of the mark at each spot that has not its first.
	choice map[string]int
	// texts are the texts of the marks that were set last.
	texts map[string]string
}

// newMarker finds the spots of a type.
func newMarker(t reflect.Type) *marker {
	m := &marker{byPath: map[string]*spot{}}
	m.build(t, nil)
	return m
}

// build returns a pointer to a value that holds the chosen marks.
func (m *marker) build(t reflect.Type, choice map[string]int) reflect.Value {
	m.choice, m.texts = choice, map[string]string{}
	out := reflect.New(t)
	m.fill(out.Elem(), "", false, false)
	return out
}

// fill sets a value with all that is in it. What may be left out of JSON is
// optional.
func (m *marker) fill(v reflect.Value, path string, hidden, optional bool) {
	t := v.Type()
	switch {
	case isPart(t):
		m.fillMembers(v, path, hidden)
	case t.Kind() == reflect.Pointer && isPart(t.Elem()):
		if m.pick(path, hidden, parts(1, 0)).size > 0 {
			v.Set(reflect.New(t.Elem()))
			m.fillMembers(v.Elem(), path, hidden)
		}
	case t.Kind() == reflect.Slice && isPart(t.Elem()):
		size := m.pick(path, hidden, parts(1, 2, 0)).size
		v.Set(reflect.MakeSlice(t, size, size))
		for i := range size {
			m.fillMembers(v.Index(i), path+"[]", hidden)
		}
	default:
		p := m.byPath[path]
		if p == nil {
			p = &spot{path: path, hidden: hidden, enum: isEnum(t), marks: marksOf(t, len(m.spots)+1, optional)}
			m.add(p)
		}
		v.Set(m.chosen(p).value)
	}
}

func (m *marker) fillMembers(v reflect.Value, path string, hidden bool) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := op.WireName(f)
		switch {
		case name != "":
			_, omit, _ := strings.Cut(f.Tag.Get("json"), ",")
			m.fill(v.Field(i), joined(path, name), hidden, omit == "omitzero")
		case f.Anonymous || path == "" && (f.Name == "Path" || f.Name == "Query" || f.Name == "Body"):
			m.fillMembers(v.Field(i), path, hidden)
		case f.IsExported():
			m.fill(v.Field(i), joined(path, f.Name), true, false)
		}
	}
}

func (m *marker) pick(path string, hidden bool, marks []probe) probe {
	p := m.byPath[path]
	if p == nil {
		p = &spot{path: path, hidden: hidden, marks: marks}
		m.add(p)
	}
	return m.chosen(p)
}

func (m *marker) add(p *spot) {
	m.spots, m.byPath[p.path] = append(m.spots, p), p
}

func (m *marker) chosen(p *spot) probe {
	chosen := p.marks[m.choice[p.path]]
	m.texts[p.path] = chosen.text
	return chosen
}

func joined(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// isPart reports whether a type is a struct of members, and no value of its own.
func isPart(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	switch reflect.New(t).Interface().(type) {
	case encoding.TextMarshaler, encoding.TextUnmarshaler, json.Marshaler:
		return false
	}
	element, _ := op.OptionalElement(t)
	return element == nil
}

func isReadable(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func isEnum(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t.Kind() == reflect.String && t.Implements(reflect.TypeFor[op.Enum]())
}

// parts are the marks of a part, as many as given.
func parts(sizes ...int) []probe {
	list := make([]probe, len(sizes))
	for i, size := range sizes {
		list[i] = probe{text: countText(size), size: size}
	}
	return list
}

// countText is the text of a list of the given number of parts.
func countText(n int) string { return "[" + strconv.Itoa(n) + "]" }

// marksOf are the marks of the nth leaf.
func marksOf(t reflect.Type, n int, optional bool) []probe {
	if t.Kind() == reflect.Pointer {
		list := marksOf(t.Elem(), n, false)
		for i := range list {
			pointer := reflect.New(t.Elem())
			pointer.Elem().Set(list[i].value)
			list[i].value = pointer
		}
		return append(list, probe{text: null, value: reflect.Zero(t)})
	}
	list := ownMarks(t, n)
	if optional && list[len(list)-1].text != `""` {
		list = append(list, probe{text: null, value: reflect.Zero(t)})
	}
	return list
}

// ownMarks are the marks of the nth leaf of a type that is no pointer. That there are
// none is a programming error: the table of fields would lack what the leaf moves.
func ownMarks(t reflect.Type, n int) []probe {
	switch {
	case isEnum(t) && t.Kind() == reflect.String:
		return enumMarks(t)
	case t.Kind() == reflect.Slice:
		return listMarks(t, n)
	case t.Kind() == reflect.Array && t.Len() == len(domain.ClientID{}):
		return []probe{idMark(t, n), idMark(t, n+somewhere)}
	case t.Kind() == reflect.Struct && isUnion(t):
		return unionMarks(t, n)
	case isReadable(t):
		return readMarks(t, n)
	}

	var values []any
	switch t.Kind() {
	case reflect.String:
		values = []any{fmt.Sprintf("a%d b%d", n, n), fmt.Sprintf("c%d d%d", n, n), markID(n).UUID(), ""}
	case reflect.Bool:
		values = []any{true, false}
	case reflect.Int:
		values = []any{n, n + somewhere, 0}
	case reflect.Float64:
		values = []any{float64(n) + 0.5, float64(n+somewhere) + 0.5, 0.0}
	default:
		panic(fmt.Sprintf("no marks of a %s are known", t))
	}
	list := make([]probe, len(values))
	for i, value := range values {
		list[i] = markOf(reflect.ValueOf(value).Convert(t))
	}
	return list
}

// somewhere is far from the number of any leaf.
const somewhere = 5000

// markID is the id with a number; numberOf is its inverse.
func markID(n int) domain.ID[domain.UserKind] {
	return domain.ID[domain.UserKind]{0: 1, 6: 0x70, 8: 0x80, 14: byte(n >> 8), 15: byte(n)}
}

func numberOf(id domain.ID[domain.UserKind]) int { return int(id[14])<<8 | int(id[15]) }

func idMark(t reflect.Type, n int) probe { return markOf(reflect.ValueOf(markID(n)).Convert(t)) }

func markOf(v reflect.Value) probe { return probe{text: encoded(v), value: v} }

// encoded is a value as JSON.
func encoded(v reflect.Value) string {
	text, err := ginop.Encode(v.Interface())
	if err != nil {
		panic(fmt.Sprintf("a %s as JSON: %v", v.Type(), err))
	}
	return string(text)
}

func enumMarks(t reflect.Type) (list []probe) {
	for _, value := range reflect.Zero(t).Interface().(op.Enum).Values() {
		list = append(list, probe{text: strconv.Quote(value), value: reflect.ValueOf(value).Convert(t)})
	}
	return list
}

// listMarks are lists of one and of two values, and none.
func listMarks(t reflect.Type, n int) (list []probe) {
	items := ownMarks(t.Elem(), n)
	for i := range items {
		list = append(list, listOf(t, items[i:i+1]))
	}
	return append(list, listOf(t, items[:2]), probe{text: null, value: reflect.Zero(t)})
}

func listOf(t reflect.Type, items []probe) probe {
	out, texts := reflect.MakeSlice(t, 0, len(items)), make([]string, len(items))
	for i, item := range items {
		out, texts[i] = reflect.Append(out, item.value), item.text
	}
	return probe{text: "[" + strings.Join(texts, ",") + "]", value: out}
}

// isUnion reports whether a struct holds one id of several kinds.
func isUnion(t reflect.Type) bool {
	for i := range t.NumField() {
		if t.Field(i).Type.Kind() != reflect.Array {
			return false
		}
	}
	return t.NumField() > 1
}

func unionMarks(t reflect.Type, n int) (list []probe) {
	for i := range t.NumField() {
		v := reflect.New(t).Elem()
		v.Field(i).Set(idMark(t.Field(i).Type, n+i*somewhere/10).value)
		list = append(list, markOf(v))
	}
	return list
}

// readMarks are the texts that a type takes: ids, numbers, lists of them, times
// and days. Two of the times are before and after all others.
func readMarks(t reflect.Type, n int) (list []probe) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 123456000, time.UTC).Add(time.Duration(n) * time.Hour)
	texts := []string{
		markID(n).UUID(), markID(n + somewhere).UUID(), strconv.Itoa(n), strconv.Itoa(n + somewhere),
		at.Format(microseconds), at.AddDate(-20, 0, 0).Format(microseconds), at.AddDate(20, 0, 0).Format(microseconds),
		at.Format(time.DateOnly), at.AddDate(1, 0, 0).Format(time.DateOnly),
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[op.ListParam]()) {
		texts = []string{strconv.Itoa(n), fmt.Sprintf("%d,%d", n, n+somewhere)}
	}
	for _, text := range texts {
		v := reflect.New(t)
		if v.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)) != nil {
			continue
		}
		resolve(v)
		list = append(list, probe{text: readText(t, text), value: v.Elem()})
	}
	if len(list) == 0 {
		panic(fmt.Sprintf("no marks of a %s are known", t))
	}
	return list
}

const microseconds = "2006-01-02T15:04:05.000000Z"

// readText is a text that a type takes as JSON.
func readText(t reflect.Type, text string) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[op.ListParam]()) {
		return "[" + text + "]"
	}
	if _, err := strconv.Atoi(text); err == nil {
		return text
	}
	return strconv.Quote(text)
}

// refs is the package of Ref.
var refs = reflect.TypeFor[idmap.Ref[domain.ClientKind]]().PkgPath()

// resolve gives the Refs of a value the ids of their numbers, as the registry does.
func resolve(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			resolve(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			resolve(v.Index(i))
		}
	case reflect.Struct:
		if v.Type().PkgPath() != refs {
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
					resolve(v.Field(i))
				}
			}
			return
		}
		number, id := v.FieldByName("Number"), v.FieldByName("ID")
		id.Set(reflect.ValueOf(markID(int(number.Int()))).Convert(id.Type()))
	}
}

// flattened are the texts of what stands at each path of a JSON value; of a list,
// the number of its items and the texts of the first.
func flattened(value []byte) (map[string]string, error) {
	var tree any
	decoder := json.NewDecoder(strings.NewReader(string(value)))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	texts := map[string]string{}
	flatten(tree, "", texts)
	return texts, nil
}

func flatten(tree any, path string, texts map[string]string) {
	switch tree := tree.(type) {
	case map[string]any:
		for name, member := range tree {
			flatten(member, joined(path, name), texts)
		}
	case []any:
		texts[path] = countText(len(tree))
		if len(tree) > 0 {
			flatten(tree[0], path+"[]", texts)
		}
	default:
		text, _ := json.Marshal(tree) // what was read can be written
		texts[path] = string(text)
	}
}
