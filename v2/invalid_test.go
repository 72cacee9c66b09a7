package v2_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/domain/rule"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// provokeInvalid sends what the tags of the operation's input forbid, one fault
// at a time, and wants each to be named.
func (w *world) provokeInvalid(t *testing.T, o op.Operation) {
	before := w.contents()
	for _, p := range o.Input().Query {
		t.Run("query "+p.Name, func(t *testing.T) { w.in(t).badParameter(t, o, p) })
	}
	if o.Input().Body != nil {
		t.Run("body", func(t *testing.T) { w.in(t).badBodies(t, o) })
		for _, m := range members(o) {
			t.Run("body "+m.name, func(t *testing.T) { w.in(t).badMember(t, o, m) })
		}
	}
	if o.Meta().Method == "POST" {
		for _, key := range []string{strings.Repeat("k", 256), "é", "a\tb"} {
			checkInvalid(t, w.in(t).send(o, w.tenant.Key, w.ids(), "Idempotency-Key", key), "Idempotency-Key", "255")
		}
	}
	if after := w.contents(); after != before {
		t.Error("refused requests changed something")
	}
}

// checkInvalid wants a 400 whose one fault is of the field, with a message that
// holds the words.
func checkInvalid(t *testing.T, r v2test.Response, field string, words ...string) {
	t.Helper()
	checkError(t, r, domain.InvalidRequest)
	fields, _ := r.Field("error.fields").([]any)
	if len(fields) != 1 || fields[0].(map[string]any)["field"] != field {
		t.Errorf("the fields are %v, not %s alone", fields, field)
		return
	}
	message := fields[0].(map[string]any)["message"].(string)
	for _, word := range words {
		if !strings.Contains(message, word) {
			t.Errorf("%s: the message %q does not say %q", field, message, word)
		}
	}
}

func (w *world) badParameter(t *testing.T, o op.Operation, p op.Param) {
	bad := map[string]string{"a\x00b": "UTF-8", "\xff": "UTF-8"}
	rules := strings.Split(p.Tag.Get("validate"), ",")
	elem := p.Type
	if elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	enum, isEnum := reflect.Zero(elem).Interface().(rule.Enum)
	list, isList := reflect.New(elem).Interface().(op.ListParam)
	switch {
	case isEnum:
		all := strings.Join(enum.Values(), ", ")
		other := strings.ToUpper(enum.Values()[0])
		if other == enum.Values()[0] {
			other = strings.ToLower(other)
		}
		maps.Copy(bad, map[string]string{"nope": all, other: all, enum.Values()[0] + " ": all})
	case elem == reflect.TypeFor[domain.Time]():
		for _, text := range []string{"yesterday", "2026-06-15", "2026-06-15T12:00:00", "2026-13-01T00:00:00Z", "1750000000", "2026-06-15 12:00:00Z"} {
			bad[text] = "RFC 3339"
		}
		prefix, isFrom := strings.CutSuffix(p.Name, "since")
		if isFrom && slices.ContainsFunc(o.Input().Query, func(other op.Param) bool { return other.Name == prefix+"until" }) {
			w.checkPeriods(t, o, prefix)
		}
	case elem.Kind() == reflect.Int:
		for _, text := range []string{"x", "1.5", "1e2", "99999999999999999999"} {
			bad[text] = "integer"
		}
		for _, rule := range rules {
			if bounds, ok := strings.CutPrefix(rule, "between="); ok {
				low, high, _ := strings.Cut(bounds, " ")
				l, _ := strconv.Atoi(low)
				h, _ := strconv.Atoi(high)
				bad[strconv.Itoa(l-1)], bad[strconv.Itoa(h+1)] = "between "+low+" and "+high, "between "+low+" and "+high
				for _, good := range []string{low, high} {
					w.Get(pathOf(t, o, w.ids(), p.Name+"="+good), w.tenant.Key).Want(o.Meta().Status)
				}
			}
		}
	case isList:
		bad[strings.Repeat(",x", list.MaxItems()+1)] = strconv.Itoa(list.MaxItems()) + " items"
		if p.Name != "ids" { // of which unknown ones are not found
			bad["nope"] = "must be a list of"
		}
	case p.Name == "cursor":
		bad["bm90IGEgY3Vyc29y"] = "cursor"
	}
	for text, words := range bad {
		r := w.Get(pathOf(t, o, w.ids(), p.Name+"="+url.QueryEscape(text)), w.tenant.Key)
		checkInvalid(t, r, p.Name, words)
	}
	w.badNames(t, o, p, isList)
	if elem == reflect.TypeFor[domain.Time]() || slices.Contains(rules, "email") {
		text := map[bool]string{true: "a+b@example.com", false: "2026-01-01T00:00:00+02:00"}[slices.Contains(rules, "email")]
		checkInvalid(t, w.Get(pathOf(t, o, w.ids(), p.Name+"="+text), w.tenant.Key), p.Name, "write + as %2B")
	}
	if strings.HasSuffix(p.Name, "_id") { // what identifies nothing finds nothing
		if found := rows(w.Get(pathOf(t, o, w.ids(), p.Name+"=x"), w.tenant.Key).Want(o.Meta().Status)); len(found) > 0 {
			t.Errorf("with a malformed %s there are %v", p.Name, found)
		}
	}
	// An empty parameter is an absent one.
	if empty := w.Get(pathOf(t, o, w.ids(), p.Name+"="), w.tenant.Key); isRequired(p) {
		checkInvalid(t, empty, p.Name, "required")
	} else if p.Name != "ids" {
		absent := w.Get(pathOf(t, o, w.ids()), w.tenant.Key)
		if absent.Status != o.Meta().Status || anonymous(absent) != anonymous(empty) {
			t.Errorf("without %s: %s, with an empty one: %s", p.Name, absent.Body, empty.Body)
		}
	}
	if isEnum {
		for _, value := range enum.Values() {
			w.Get(pathOf(t, o, w.ids(), p.Name+"="+url.QueryEscape(value)), w.tenant.Key).Want(o.Meta().Status)
		}
	}
}

// checkPeriods verifies that nothing is found in a period whose bounds are equal, and that a period that ends before it
// starts is refused. prefix is that of the names of the bounds.
func (w *world) checkPeriods(t *testing.T, o op.Operation, prefix string) {
	t.Helper()
	get := func(since, until time.Time) v2test.Response {
		since, until = since.UTC(), until.UTC()
		return w.Get(pathOf(t, o, w.ids(), prefix+"since="+since.Format(time.RFC3339Nano), prefix+"until="+until.Format(time.RFC3339Nano)), w.tenant.Key)
	}
	now := w.Clock.Now() // when the world's rows were made
	checkInvalid(t, get(now.Add(time.Microsecond), now), prefix+"since", "must not be after "+prefix+"until")
	for _, row := range rows(get(now, now).Want(o.Meta().Status)) {
		if row["unresolved_exposures"] != 0.0 || row["resolved_exposures"] != 0.0 { // a list of users, with numbers
			t.Errorf("%s: between equal bounds there is %v", o.Meta().ID, row)
		}
	}
	if o.Meta().ID == "dark_web.exposures.list" && len(rows(get(now, now.Add(time.Microsecond)))) == 0 {
		t.Error("there is nothing at the bounds: the test shows nothing")
	}
}

// badNames verifies that a parameter that is no list is refused by a name with brackets, and that the name of a list may
// have them.
func (w *world) badNames(t *testing.T, o op.Operation, p op.Param, isList bool) {
	for _, brackets := range []string{"[]", "[0]", "%5B%5D"} {
		r := w.Get(pathOf(t, o, w.ids(), p.Name+brackets+"=x"), w.tenant.Key)
		if !isList {
			checkInvalid(t, r, p.Name, "is not a list")
			continue
		}
		plain := w.Get(pathOf(t, o, w.ids(), p.Name+"=x"), w.tenant.Key)
		if r.Status != plain.Status || anonymous(r) != anonymous(plain) {
			t.Errorf("%s%s=x: got %d %s, want %d %s", p.Name, brackets, r.Status, r.Body, plain.Status, plain.Body)
		}
	}
}

// badBodies sends what is not one object of known members.
func (w *world) badBodies(t *testing.T, o op.Operation) {
	first := members(o)[0].name
	quoted := strconv.Quote(first)
	for body, field := range map[string]string{
		"": "body", " ": "body", "[]": "body", "null": "body", `"text"`: "body", "1": "body", "true": "body", "[{}]": "body",
		"{": "body", "{}}": "body", "{} {}": "body", "{}x": "body", `{"a":}`: "body", "{'a':1}": "body", "\ufeff[]": "body", "\ufeff": "body",
		`{` + quoted + `:"` + "\xff" + `"}`: "body",
		`{` + quoted + `:"\ud800"}`:         "body",
	} {
		if o.Input().OptionalBody && strings.Trim(body, "\ufeff") == "" {
			continue // as {}
		}
		r := w.Do(o.Meta().Method, pathOf(t, o, w.ids()), w.tenant.Key, body)
		t.Logf("%.60q", body)
		checkInvalid(t, r, field)
	}
	// Members that are wrong, beside those that are missing.
	for body, want := range map[string]domain.FieldError{
		`{"unknown":1}`:               {Field: "unknown", Message: "is unknown"},
		`{"unknown":{"deep":[1]}}`:    {Field: "unknown", Message: "is unknown"},
		`{` + quoted + `:"a\u0000b"}`: {Field: first, Message: "must not contain a NUL"},
	} {
		r := w.Do(o.Meta().Method, pathOf(t, o, w.ids()), w.tenant.Key, body)
		checkError(t, r, domain.InvalidRequest)
		var got op.ErrorEnvelope
		if r.Into(&got); !slices.Contains(got.Error.Fields, want) {
			t.Errorf("%s: the fields are %v", body, got.Error.Fields)
		}
	}
	// A valid body but for a member given twice, one member more, or a name in
	// another case.
	body := w.body(o)
	value, _ := json.Marshal(body[first])
	if text, _ := json.Marshal(body); body[first] != nil {
		twice := fmt.Sprintf("%s,%s:%s}", text[:len(text)-1], quoted, value)
		checkInvalid(t, w.Do(o.Meta().Method, pathOf(t, o, w.ids()), w.tenant.Key, twice), first, "must be given once")
	}
	body[strings.ToUpper(first)] = "x"
	checkInvalid(t, w.Do(o.Meta().Method, pathOf(t, o, w.ids()), w.tenant.Key, body), strings.ToUpper(first), "unknown")
}

// badMember sends otherwise valid bodies with one member that is wrong.
func (w *world) badMember(t *testing.T, o op.Operation, m member) {
	bad := map[string]string{} // what the message must say, by the JSON of the member
	add := func(words string, texts ...string) {
		for _, text := range texts {
			bad[text] = words
		}
	}
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	if !m.null {
		add("", "null")
	}
	add("must be", `{"a":1}`)
	switch {
	case m.enum() != nil:
		add("must be one of "+strings.Join(m.enum(), ", "), `"nope"`, `""`, quoted(strings.ToUpper(m.enum()[0])))
		add("must be", "1")
	case m.typ.Kind() == reflect.String:
		add("must be a string", "1", "true", `["a"]`)
		if m.has("email") { // which has further bounds of its own
			add("", quoted(strings.Repeat("a", m.max()+1-len("@example.com"))+"@example.com"))
			add("email", `"nobody"`, `"@example.com"`, `"a@b@c"`, `" a@example.com"`)
		} else {
			add(strconv.Itoa(m.max())+" characters", quoted(strings.Repeat("é", m.max()+1)))
		}
		if m.has("email") && m.null {
			add("", `""`)
		}
		if m.has("endpoint") {
			const site = "https://example.com/"
			add("2000 characters", quoted(site+strings.Repeat("é", m.max()-len(site)+1)))
			add("https", `"http://example.com"`)
			add("user name", `"https://u@example.com"`)
			add("port", `"https://example.com:80"`)
		}
		if m.has("name") {
			add("control", `"a\u0007b"`)
			add("visible", `"\u200b\u3164"`)
		}
		if m.has("header") {
			add("visible ASCII", `""`, `" x"`, `"x "`, `"x\ty"`, `"x\r\ny"`, `"Zoë"`)
		}
		if m.has("filled") {
			add("blank", `""`, `" \t\n\u00a0\u3000"`)
		}
	case m.typ.Kind() == reflect.Bool:
		add("true or false", `"true"`, "1")
	case m.typ.Kind() == reflect.Slice:
		add("array", `"a"`)
		if m.has("required") {
			item := quoted(w.user.ID.String())
			if m.typ == reflect.TypeFor[[]domain.EventType]() {
				item = quoted(string(domain.UserCreated))
			}
			add("", "[]", "["+strings.Repeat(item+",", m.max())+item+"]")
		}
	case m.typ == reflect.TypeFor[domain.Time](), m.typ == reflect.TypeFor[domain.Date]():
		add("must be", `"tomorrow"`, "1", `"2026-02-30"`, `""`)
	case m.typ.Kind() == reflect.Struct:
		delete(bad, `{"a":1}`) // whose members are named
		add("must be", `"all"`, "[]")
	case m.typ.Kind() == reflect.Array: // an id
		add("", `"x"`, "1", `"usr_01h455vb4pex5vsknk084sn02q"`, `""`)
	}
	for text, words := range bad {
		body := w.body(o)
		body[m.name] = json.RawMessage(text)
		r := w.Do(o.Meta().Method, pathOf(t, o, w.ids()), w.tenant.Key, body)
		t.Logf("%.80s", text)
		checkInvalid(t, r, m.name, words)
	}
	if m.has("filled") && !m.optional && o.Meta().Method == "POST" {
		body := w.body(o)
		delete(body, m.name)
		checkInvalid(t, w.Do("POST", pathOf(t, o, w.ids()), w.tenant.Key, body), m.name, "required")
	}
}

// TestLengths holds the lengths of decisions 2.5, counted in characters, for
// every text of every body.
func TestLengths(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		for _, m := range members(o) {
			if m.typ.Kind() != reflect.String || m.enum() != nil {
				continue
			}
			want := 500
			switch {
			case m.has("email"):
				want = 254
			case m.name == "name" || strings.HasSuffix(m.name, "_name"):
				want = 200
			case m.name == "label":
				want = 100
			case m.name == "description", m.has("endpoint"):
				want = 2000
			case m.has("header"):
				want = 1000
			}
			if m.max() != want {
				t.Errorf("%s holds %d characters, not %d", m.name, m.max(), want)
			}
			body := w.body(o)
			if body[m.name] == nil { // the sample has a field that takes its place
				clear(body)
			}
			body[m.name] = fmt.Sprintf("%08d", w.sampled.Add(1)) + strings.Repeat("😀", want-8)
			if m.has("endpoint") {
				body[m.name] = "https://example.com/" + strings.Repeat("😀", want-len("https://example.com/"))
			}
			if m.has("header") {
				body[m.name] = strings.Repeat("x", want)
			}
			if m.has("email") { // 64 before the @, and labels of 61
				body[m.name] = strings.Repeat("a", 64) + "@" + strings.Repeat(strings.Repeat("b", 61)+".", 3) + "com"
			}
			w.Do(o.Meta().Method, pathOf(t, o, w.ids()), w.tenant.Key, body).Want(o.Meta().Status)
		}
	})
}

// TestAllValuesAtOnce verifies that an array of a body takes all values of its enum: its maximum does not lag behind them.
func TestAllValuesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	arrays := 0
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		for _, m := range members(o) {
			if m.typ.Kind() != reflect.Slice {
				continue
			}
			enum, ok := reflect.Zero(m.typ.Elem()).Interface().(rule.Enum)
			if !ok {
				continue
			}
			arrays++
			body := w.body(o)
			body[m.name] = enum.Values()
			w.Do(o.Meta().Method, pathOf(t, o, w.ids()), w.tenant.Key, body).Want(o.Meta().Status)
		}
	})
	if arrays == 0 {
		t.Error("no body has an array of an enum: the test shows nothing")
	}
}

// TestUnknownParametersAreIgnored holds decisions 2.5, for all operations.
func TestUnknownParametersAreIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		var body any
		if o.Input().Body != nil {
			body = w.body(o)
		}
		path := pathOf(t, o, w.ids(), strings.Split("unknown=1&client_id=cli_x&Body=x&rows=7&Skip=3&LIMIT=0&Rows=0", "&")...)
		r := w.Do(o.Meta().Method, path, w.tenant.Key, body, "Content-Type", "text/csv").Want(o.Meta().Status)
		checkHeaders(t, r)
	})
}

// tableContents selects all that the tables hold but for the keys' own rows and what a read may store, as %[1]s of the
// columns: a line a table.
const tableContents = `SELECT string_agg(name || ' ' || query_to_xml(format('SELECT %[1]s AS r FROM %%I AS r', columns, name), true, true, '')::text, E'\n' ORDER BY name)
	FROM (SELECT c.relname AS name, string_agg(quote_ident(a.attname), ',' ORDER BY a.attnum) AS columns
		FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
		AND c.relname NOT IN ('api_keys', 'api_key_clients', 'goose_db_version')
		AND a.attname NOT IN ('audience_count', 'acknowledged_count', 'counted_until', 'counted_at')
		GROUP BY c.relname) AS t`

// contents is a fingerprint of all that the service keeps.
func (w *world) contents() string {
	w.T.Helper()
	return w.Text(fmt.Sprintf(tableContents, "count(*) || '' '' || sum(hash_record_extended(ROW(%s), 0))"))
}

// rowsOf is the text of all that the service keeps.
func rowsOf(h *v2test.Harness) string {
	return h.Text(fmt.Sprintf(tableContents, "string_agg(ROW(%s)::text, E''\\n'' ORDER BY r)"))
}
