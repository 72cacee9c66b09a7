package v2_test

import (
	"bufio"
	"errors"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/domain/rule"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// bindingsFile has what the cursors of each list are bound to, by the request: without
// filters, and with each of them.
const bindingsFile = "testdata/cursor_bindings.txt"

// TestCursorBindings: what a list's cursors are bound to is never changed, for that would
// refuse the cursors that callers have. -update adds lines, and keeps those that are there.
func TestCursorBindings(t *testing.T) {
	t.Parallel()
	kept := map[string][]string{} // the requests of releases before, by the operation
	for _, line := range linesOf(t, bindingsFile) {
		fields := strings.Split(line, "\t")
		kept[fields[0]] = append(kept[fields[0]], fields[1])
	}
	var all []string
	for _, o := range api.Operations {
		requests := append(cursorRequests(t, o), kept[o.Meta().ID]...)
		slices.Sort(requests)
		all = append(all, bindingLines(t, o, slices.Compact(requests))...)
	}
	keepBindings(t, bindingsFile, all)
}

// bindingLines are the lines of a list's bindings, one for each request.
func bindingLines(t *testing.T, o op.Declaration, requests []string) (lines []string) {
	t.Helper()
	for _, request := range requests {
		lines = append(lines, o.Meta().ID+"\t"+request+"\t"+binding(t, o, request))
	}
	return lines
}

// keepBindings holds lines to those of a file, to which -update adds.
func keepBindings(t *testing.T, file string, lines []string) {
	t.Helper()
	kept := linesOf(t, file)
	slices.Sort(lines)
	for _, line := range kept {
		if !slices.Contains(lines, line) {
			t.Errorf("this binding is changed or gone, and cursors with it are refused:\n%s", line)
		}
	}
	switch {
	case slices.Equal(lines, kept) || t.Failed():
	case *update:
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s lacks lines (make goldens)\n%s", file, v2test.Diff(strings.Join(kept, "\n"), strings.Join(lines, "\n")))
	}
}

func binding(t *testing.T, o op.Declaration, request string) string {
	t.Helper()
	binding, err := op.ListBinding(o, bindRequest(t, o, request))
	if err != nil {
		t.Fatal(err)
	}
	return binding
}

// cursorRequests are requests for a list: without filters, with one value of each filter or
// all of an enum, and with one value of all filters. None for what is no list.
func cursorRequests(t *testing.T, o op.Declaration) (requests []string) {
	t.Helper()
	if !slices.ContainsFunc(o.Input().Query, func(p op.Param) bool { return p.Name == "cursor" }) {
		return nil
	}

	address := func(query ...string) string {
		return strings.TrimPrefix(pathOf(t, o, strangers(), query...), "/v2")
	}
	requests = []string{address()}
	var every []string
	for _, p := range o.Input().Query {
		if p.Name == "limit" || p.Name == "cursor" {
			continue
		}
		values := filterTexts(t, p)
		for _, text := range values {
			requests = append(requests, address(p.Name+"="+text))
		}
		every = append(every, p.Name+"="+values[len(values)-1])
	}
	if len(every) > 1 {
		requests = append(requests, address(every...))
	}
	return requests
}

// filterTexts are texts of a filter.
func filterTexts(t interface{ Fatalf(string, ...any) }, p op.Param) []string {
	typ := p.Type
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if enum, ok := reflect.Zero(typ).Interface().(rule.Enum); ok {
		return enum.Values()
	}
	if p.Name == "email" || p.Name == "manager_email" {
		return []string{"nobody@example.com", everywhere}
	}
	switch typ {
	case reflect.TypeFor[op.IDList[domain.ClientKind]]():
		return []string{"", strangers()["client_id"]}
	case reflect.TypeFor[api.EnumList[domain.EventType]]():
		return []string{"user.created,user.updated"}
	case reflect.TypeFor[api.MessageTypes]():
		return []string{"phishing,welcome"}
	case reflect.TypeFor[api.AssignmentStatuses]():
		return []string{"assigned,overdue", "completed"}
	case reflect.TypeFor[api.ResultStatuses]():
		return []string{"sent,opened"}
	case reflect.TypeFor[domain.Time]():
		return []string{"2026-01-31T08:00:00.123456Z", "2026-01-31T08:00:00Z"}
	case reflect.TypeFor[domain.Date]():
		return []string{"2026-01-31"}
	case reflect.TypeFor[bool](), reflect.TypeFor[api.Follow]():
		return []string{"true", "false"}
	case reflect.TypeFor[string]():
		return []string{url.QueryEscape(`é "x",&`), "x"}
	}
	t.Fatalf("the tests have no text of %s, a %s", p.Name, typ)
	return nil
}

// everywhere is the address of a user of several clients, where a test has some.
const everywhere = "everywhere@example.com"

// bindRequest binds a path with its query, and a body after a space, to an input of the
// operation.
func bindRequest(t *testing.T, o op.Declaration, request string) any {
	t.Helper()
	target, body, given := strings.Cut(request, " ")
	if !given {
		body = "{}"
	}
	path, query, _ := strings.Cut(target, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	segments, names := strings.Split(path, "/"), strings.Split(o.Meta().Path, "/")
	in, r := o.New(), op.Request{Query: values, Body: []byte(body)}
	if o.Input().Body == nil {
		r.Body = nil
	}
	r.Path = func(name string) string { return segments[slices.Index(names, ":"+name)] }
	if err := o.Input().Bind(in, r); err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	return in
}

func linesOf(t *testing.T, file string) (lines []string) {
	t.Helper()
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}
