package op_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// FuzzDecodeBody: whatever is sent is taken or refused as InvalidRequest with a
// field named; what is taken is one JSON object in UTF-8 without NUL, and keeps
// the rules.
func FuzzDecodeBody(f *testing.F) {
	for _, seed := range []string{
		`{"name":"n"}`, `{"name":"n","count":3,"user_ids":["usr_01h455vb4pex5vsknk084sn02q"],"inner":{"label":"x","tones":["red"]}}`,
		``, `{`, `{}`, `[]`, `null`, `{"name":null}`, `{"name":"n","name":"m"}`, `{"name":"a\u0000b"}`, "{\"name\":\"\xff\"}", `{"name":"\ud800"}`,
		`{"inners":[{"label":"a"},{}]}`, `{"":1}`, `{"a":{"b":[1,{"c":null}]}}`, `{"name":"n"}x`, "\ufeff{}", `{"count":1e400}`, `{"at":"2026-01-01T00:00:00Z"}`,
		strings.Repeat(`{"inner":`, 50), `{"a":` + strings.Repeat("[", 2000), `{"name":"n","count":2.0}`, `{"name":"n","count":-0}`,
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	o := newOp()
	f.Fuzz(func(t *testing.T, body []byte, lenient bool) {
		in := o.New()
		err := o.Input().Bind(in, op.Request{Path: func(string) string { return "" }, Body: body, Lenient: lenient})
		if err == nil {
			body = bytes.TrimPrefix(body, []byte("\ufeff"))
			if !json.Valid(body) || !utf8.Valid(body) || strings.TrimLeft(string(body), " \t\r\n")[0] != '{' {
				t.Fatalf("%q is taken", body)
			}
			if s := in.(*sample); strings.ContainsRune(s.Body.Name, 0) || s.Body.Hidden != "" {
				t.Fatalf("%q becomes %+v", body, s.Body)
			}
			err = o.Validate(in)
		}
		if err == nil {
			if name := in.(*sample).Body.Name; strings.TrimSpace(name) == "" || utf8.RuneCountInString(name) > 5 {
				t.Fatalf("%q is taken as a name", name)
			}
			return
		}
		checkRefusal(t, err)
	})
}

// checkRefusal wants InvalidRequest with every fault named and said.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var e *domain.Error
	if !errors.As(err, &e) || e.Code != domain.InvalidRequest || len(e.Fields) == 0 {
		t.Fatalf("refused with %v", err)
	}
	for _, fault := range e.Fields {
		if fault.Field == "" || fault.Message == "" {
			t.Fatalf("a fault is %+v", fault)
		}
	}
}

// FuzzBindQuery: whatever is asked for is taken within the rules or refused as
// InvalidRequest, and no query reaches what is not a parameter.
func FuzzBindQuery(f *testing.F) {
	for _, seed := range []string{
		"", "limit=1", "limit=0", "limit=%00", "limit=1&limit=2", "ids=,,x", "ids=" + clientID, "since=2026-01-01T00:00:00Z", "since=0000-01-01T00:00:00Z",
		"since=9999-12-31T23:59:59-23:59", "tint=red", "tint=%ff", "draft=1", "note=", "Secret=x&Rows=1&Skip=1&Total=true", "limit=9223372036854775808", "a;b=1",
		"ids[]=" + clientID, "ids[1]=x&ids[0]=y", "ids[a]=x", "limit[]=1", "since=2026-01-01T00:00:00+02:00", "[]=[", "ids[",
	} {
		f.Add(seed)
	}
	o := newOp()
	f.Fuzz(func(t *testing.T, query string) {
		values, _ := url.ParseQuery(query)
		in := o.New()
		err := o.Input().Bind(in, op.Request{Path: func(string) string { return query }, Query: values, Body: []byte(`{"name":"n"}`)})
		if err == nil {
			err = o.Validate(in)
		}
		if err != nil {
			checkRefusal(t, err)
			return
		}
		q := in.(*sample).Query
		if q.Limit < 1 || q.Limit > 500 || q.Rows != 0 || q.Skip != 0 || q.Total || q.Secret != "" {
			t.Fatalf("%q becomes %+v", query, q)
		}
		if q.IDs != nil && len(q.IDs.IDs) > op.MaxIDs {
			t.Fatalf("%d ids are taken", len(q.IDs.IDs))
		}
		for _, text := range []string{q.Cursor, string(q.Tint)} {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				t.Fatalf("%q is taken", text)
			}
		}
		if q.Since != nil && (q.Since.Time.Year() < 1 || q.Since.Time.Year() > 9999) {
			t.Fatalf("%s is taken", q.Since)
		}
	})
}

// FuzzCursor: what was sealed opens, for its own list only, and nothing else
// ever does.
func FuzzCursor(f *testing.F) {
	f.Add("clients.list", "a key", "019b7740-0000-7000-8000-000000000001", "bm90IGEgY3Vyc29y")
	f.Add("", "", "", "")
	f.Add("b", "\u2028<é>", "i", "AAAAAAAAAAAAAAAAAAAAAHsiayI6IiJ9")
	f.Add(`["a"]`, "2026-01-01T00:00:00.000001Z", "x", "AAAAAAAAAAAAAAAAAAAAAA")
	sealer, other := domain.CursorSealer{Secret: []byte("secret")}, domain.CursorSealer{Secret: []byte("another")}
	f.Add("clients.list", "0", "0", "\r\n")                                    // base64 passes over these
	f.Add("clients.list", "0", "0", "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA") // the form alone, and nothing in it
	f.Fuzz(func(t *testing.T, binding, key, id, text string) {
		if !utf8.ValidString(key) || !utf8.ValidString(id) {
			t.Skip("the database holds UTF-8 only")
		}
		p := domain.Position{Key: key, ID: id}
		cursor := sealer.Seal(binding, p)
		if got, err := sealer.Open(binding, cursor); err != nil || got != p {
			t.Fatalf("%+v opens as %+v, %v", p, got, err)
		}
		if url.QueryEscape(cursor) != cursor {
			t.Fatalf("%q has to be escaped", cursor)
		}
		if _, err := sealer.Open(binding+"x", cursor); err == nil {
			t.Fatal("opens for another list")
		}
		if _, err := other.Open(binding, cursor); err == nil {
			t.Fatal("opens with another secret")
		}
		if _, err := sealer.Open(binding, text); err == nil && text != cursor {
			t.Fatalf("%q opens", text)
		}
		for _, forged := range []string{text + cursor, cursor + text, cursor[1:], cursor[:len(cursor)-1]} {
			if _, err := sealer.Open(binding, forged); err == nil && forged != cursor {
				t.Fatalf("%q opens", forged)
			}
		}
	})
}
