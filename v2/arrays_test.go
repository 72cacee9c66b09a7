package v2_test

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/domain/rule"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// array is an array in a body.
type array struct {
	path string // such as audience.user_ids
	item reflect.Type
	max  int // of its items
}

// arraysOf returns the arrays in a type of bodies.
func arraysOf(t reflect.Type, prefix string) (list []array) {
	for _, f := range reflect.VisibleFields(t) {
		if rule.WireName(f) == "" {
			continue
		}
		typ, path := f.Type, prefix+rule.WireName(f)
		if element, _ := rule.OptionalElement(typ); element != nil {
			typ = element
		}
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch typ.Kind() {
		case reflect.Slice:
			list = append(list, array{path, typ.Elem(), rule.MaxFromTag(f.Tag)})
		case reflect.Struct:
			list = append(list, arraysOf(typ, path+".")...)
		}
	}
	return list
}

// values returns an item of the array that is valid, and one that is not.
func (a array) values(t *testing.T, w *world) (valid, unknown string) {
	t.Helper()
	switch a.item {
	case reflect.TypeFor[domain.UserID]():
		return w.user.ID.String(), strangers()["user_id"]
	case reflect.TypeFor[domain.ClientID]():
		return w.client.ID.String(), strangers()["client_id"]
	case reflect.TypeFor[domain.CollectionID]():
		return w.parts.collections[0].String(), strangers()["collection_id"]
	case reflect.TypeFor[domain.ResultID]():
		return w.parts.results[w.sampled.Add(1)%int64(len(w.parts.results))].String(), strangers()["result_id"]
	case reflect.TypeFor[domain.EventType]():
		return string(domain.UserCreated), "nope"
	}
	t.Fatalf("the test has no item of %s, a %s", a.path, a.item)
	return "", ""
}

// send sends a sample with the items in the array.
func (a array) send(w *world, o op.Operation, items ...string) v2test.Response {
	w.T.Helper()
	body, object := w.body(o), map[string]any(nil)
	name := a.path
	if member, inner, nested := strings.Cut(a.path, "."); nested {
		object, name = map[string]any{}, inner
		if a.item == reflect.TypeFor[domain.UserID]() { // of an audience
			object["type"] = domain.NamedUsers
		}
		body[member] = object
	} else {
		object = body
	}
	object[name] = items
	return w.Do(o.Meta().Method, pathOf(w.T.(*testing.T), o, w.ids()), w.tenant.Key, body)
}

// random are the parts of a response that differ between two services.
var random = regexp.MustCompile(`"(?:[a-z]{3}_[0-9a-z]{26}|whsec_[^"]+)"`)

// TestRepeatedItemsCountOnce verifies for every array of every body that a repeated item counts once, and that maxima,
// and places in errors, are those of the array as sent. One service is sent each item once, its twin three times: what
// they return and store is the same.
func TestRepeatedItemsCountOnce(t *testing.T) {
	t.Parallel()
	once, thrice := newWorld(t, v2test.Options{Limits: v2test.Unlimited}), newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	counts := func(w *world) string { return w.Text(fmt.Sprintf(tableContents, "count(*) + 0 * count(ROW(%s))")) }
	found := 0
	once.each(t, func(t *testing.T, once *world, o op.Operation) {
		thrice := thrice.in(t)
		if o.Input().Body == nil {
			return
		}
		for _, a := range arraysOf(o.Input().Body, "") {
			found++
			item, _ := a.values(t, once)
			same, unknown := a.values(t, thrice)
			n := max(once.sampled.Load(), thrice.sampled.Load()) // both send the same sample
			once.sampled.Store(n)
			thrice.sampled.Store(n)
			want, got := a.send(once, o, item), a.send(thrice, o, same, same, same)
			shown := func(r v2test.Response) string { return random.ReplaceAllString(string(r.Body), `"ID"`) }
			if want.Status != o.Meta().Status || got.Status != want.Status || shown(got) != shown(want) {
				t.Errorf("%s: with a repeated item got %d %s, want %d %s", a.path, got.Status, got.Body, want.Status, want.Body)
			}
			if got, want := counts(thrice), counts(once); got != want {
				t.Errorf("%s: with a repeated item there are these rows:\n%s\nwant:\n%s", a.path, got, want)
			}
			checkInvalid(t, a.send(thrice, o, same, same, unknown), a.path+"[2]")
			checkInvalid(t, a.send(thrice, o, slices.Repeat([]string{same}, a.max+1)...), a.path, fmt.Sprint(a.max, " items"))
		}
	})
	if found < 10 {
		t.Errorf("found %d arrays: the test shows nothing", found)
	}
}

// TestLargestArrays verifies that an array may have as many items as its maximum, whether or not some are repeated.
func TestLargestArrays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		if o.Input().Body == nil {
			return
		}
		for _, a := range arraysOf(o.Input().Body, "") {
			item, _ := a.values(t, w)
			a.send(w, o, slices.Repeat([]string{item}, a.max)...).Want(o.Meta().Status)
		}
	})
}

// TestRepeatedValuesOfQueriesCountOnce verifies for every list in a query that a repeated value counts once, but towards
// the maximum.
func TestRepeatedValuesOfQueriesCountOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	found := 0
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		for _, p := range o.Input().Query {
			elem := p.Type
			if elem.Kind() == reflect.Pointer {
				elem = elem.Elem()
			}
			list, ok := reflect.New(elem).Interface().(op.ListParam)
			if !ok {
				continue
			}
			found++
			texts := filterTexts(t, p)
			text, _, _ := strings.Cut(texts[len(texts)-1], ",")
			if p.Name == "ids" {
				text = w.client.ID.String()
			}
			get := func(n int) v2test.Response {
				value := strings.TrimSuffix(strings.Repeat(text+",", n), ",")
				return w.Get(pathOf(t, o, w.ids(), p.Name+"="+url.QueryEscape(value)), w.tenant.Key)
			}
			want := get(1).Want(http.StatusOK)
			for _, n := range []int{3, list.MaxItems()} {
				if got := get(n); anonymous(got) != anonymous(want) {
					t.Errorf("%s=%s %d times: got %d %s, want %s", p.Name, text, n, got.Status, got.Body, want.Body)
				}
			}
			checkInvalid(t, get(list.MaxItems()+1), p.Name, fmt.Sprint(list.MaxItems(), " items"))
		}
	})
	if found == 0 {
		t.Error("found no list: the test shows nothing")
	}
}
