package op_test

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// colour is an enum.
type colour string

func (colour) Values() []string { return []string{"red", "blue"} }

type inner struct {
	Label string   `json:"label" validate:"filled,max=3"`
	Tones []colour `json:"tones,omitzero" validate:"max=2,dive,enum"`
}

// sample has a bit of everything that an input may have.
type sample struct {
	Path struct {
		ID domain.ClientID `path:"id"`
	}
	Query struct {
		op.Paging
		Since *domain.Time                  `query:"since"`
		IDs   *op.IDList[domain.ClientKind] `query:"ids"`
		Tint  colour                        `query:"tint" validate:"omitempty,enum"`
		Draft bool                          `query:"draft" default:"true"`
		Note  *string                       `query:"note"`

		Secret string
	}
	Body struct {
		Name   string          `json:"name" validate:"filled,max=5"`
		Email  *string         `json:"email,omitzero" validate:"omitnil,email"`
		Count  int             `json:"count,omitzero" validate:"min=0,max=9"`
		Loud   bool            `json:"loud,omitzero"`
		Tint   colour          `json:"tint,omitzero" validate:"omitempty,enum"`
		Users  []domain.UserID `json:"user_ids,omitzero" validate:"max=4"`
		At     *domain.Time    `json:"at,omitzero"`
		Inner  *inner          `json:"inner,omitzero"`
		Inners []inner         `json:"inners,omitzero" validate:"max=2,dive"`
		Hidden string          `json:"-"`
	}
}

func newOp() op.Operation { return declared[sample]("POST", "/samples/:id") }

// run binds and validates as a surface does; the faults are "field: message".
func run(o op.Operation, r op.Request) (any, []string) {
	in := o.New()
	err := o.Input().Bind(in, r)
	if err == nil {
		err = o.Validate(in)
	}
	if err == nil {
		return in, nil
	}
	var known *domain.Error
	if !errors.As(err, &known) || known.Code != domain.InvalidRequest {
		return nil, []string{"NOT INVALID: " + err.Error()}
	}
	faults := make([]string, len(known.Fields))
	for i, f := range known.Fields {
		faults[i] = f.Field + ": " + f.Message
	}
	if known.Message != strings.Replace(faults[0], ": ", " ", 1) {
		faults = append(faults, "BUT SAYS: "+known.Message)
	}
	return nil, faults
}

func request(id, query, body string) op.Request {
	values, err := url.ParseQuery(query)
	if err != nil {
		panic(err) // the table is wrong
	}
	return op.Request{Path: func(string) string { return id }, Query: values, Body: []byte(body)}
}

const clientID = "cli_01h455vb4pex5vsknk084sn02q"

// deep is the rest of an object whose last member is an array in n-1 arrays.
func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) + "}" }

func TestBindBody(t *testing.T) {
	o := newOp()
	usr := `"usr_01h455vb4pex5vsknk084sn02q"`
	for body, want := range map[string]string{
		`{"name":"n"}`: "",
		`{"name":"n","email":null,"count":9,"loud":true,"tint":"red","user_ids":[` + usr + `],"at":"2026-01-01T00:00:00+02:00","inner":{"label":"x"},"inners":[]}`: "",
		`{"name":"ééééé"}`:        "",
		` {"name":"n"} `:          "",
		"\ufeff" + `{"name":"n"}`: "", `{"name":"n","count":9.0}`: "", `{"name":"n","count":0.9e1}`: "", `{"name":"n","count":-0.0}`: "",

		`{}`:                                                 "name: is required",
		`{"name":" \u00a0"}`:                                 "name: must not be blank",
		`{"name":""}`:                                        "name: must not be blank",
		`{"name":null}`:                                      "name: must not be null",
		`{"name":"éééééé"}`:                                  "name: must be at most 5 characters",
		`{"name":1}`:                                         "name: must be a string",
		`{"name":"n","email":"x"}`:                           "email: must be an email address",
		`{"name":"n","count":-1}`:                            "count: must be at least 0",
		`{"name":"n","count":10}`:                            "count: must be at most 9",
		`{"name":"n","count":1.5}`:                           "count: must be an integer",
		`{"name":"n","count":10.0}`:                          "count: must be at most 9",
		`{"name":"n","count":"1"}`:                           "count: must be an integer",
		`{"name":"n","count":1e99}`:                          "count: must be an integer",
		`{"name":"n","count":null}`:                          "count: must not be null",
		`{"name":"n","loud":1}`:                              "loud: must be true or false",
		`{"name":"n","loud":null}`:                           "loud: must not be null",
		`{"name":"n","tint":"green"}`:                        "tint: must be one of red, blue",
		`{"name":"n","tint":""}`:                             "tint: must be one of red, blue",
		`{"name":"n","tint":null}`:                           "tint: must not be null",
		`{"name":"n","tint":3}`:                              "tint: must be a string",
		`{"name":"n","at":"today"}`:                          "at: must be an RFC 3339 date-time, such as 2026-01-31T08:00:00Z",
		`{"name":"n","at":5}`:                                "at: must be an RFC 3339 date-time, such as 2026-01-31T08:00:00Z",
		`{"name":"n","user_ids":null}`:                       "user_ids: must not be null",
		`{"name":"n","user_ids":{}}`:                         "user_ids: must be an array",
		`{"name":"n","user_ids":"x"}`:                        "user_ids: must be an array",
		`{"name":"n","inner":[]}`:                            "inner: must be an object",
		`{"name":"n","inner":{}}`:                            "inner.label: is required",
		`{"name":"n","inner":{"x":1}}`:                       "inner.x: is unknown; inner.label: is required",
		`{"name":"n","hidden":"x"}`:                          "hidden: is unknown",
		`{"name":"n","Hidden":"x"}`:                          "Hidden: is unknown",
		`{"name":"n","NAME":"x"}`:                            "NAME: is unknown",
		`{"name":"n","name":"n"}`:                            "name: must be given once",
		`{"name":"n","a/b~c":1}`:                             "a/b~c: is unknown",
		`{"name":"n\u0000"}`:                                 "name: must not contain a NUL",
		`{"name":"n","inner":{"label":"\u0000"}}`:            "inner.label: must not contain a NUL",
		`{"name":"n","inner":{"label":"a","label":"b"}}`:     "inner.label: must be given once",
		`{"name":"n","inner":{"label":"long"}}`:              "inner.label: must be at most 3 characters",
		`{"name":"n","inners":[{"label":"a"},{"label":""}]}`: "inners[1].label: must not be blank",
		`{"name":"n","inners":[{"label":"a","tones":["red","green"]}]}`:         "inners[0].tones[1]: must be one of red, blue",
		`{"name":"n","inners":[{"label":"a"},{"label":"a"},{"label":"a"}]}`:     "inners: must contain at most 2 items",
		`{"name":"n","inners":[{"label":"a"},7]}`:                               "inners[1]: must be an object",
		`{"name":"n","inners":[null]}`:                                          "inners[0]: must not be null",
		`{"name":"n","user_ids":[` + usr + `,` + usr + `,` + usr + `,"usr_x"]}`: "user_ids[3]: must be the ID of a user",
		`{"name":"n","user_ids":[` + usr + `,7]}`:                               "user_ids[1]: must be the ID of a user",
		`{"name":"n","user_ids":["` + clientID + `"]}`:                          "user_ids[0]: must be the ID of a user",
		`{"name":"n","user_ids":[null]}`:                                        "user_ids[0]: must not be null",

		``: "body: must be a JSON object, but is empty", ` `: "body: must be a JSON object, but is empty",
		`null`: "body: must be a JSON object", `[]`: "body: must be a JSON object", `"a"`: "body: must be a JSON object", `7`: "body: must be a JSON object",
		`{`: "body: must be valid JSON in UTF-8", `{"name":"n",}`: "body: must be valid JSON in UTF-8", `{"name":"n"`: "body: must be valid JSON in UTF-8",
		`{"name":"n"} x`: "body: must be valid JSON in UTF-8", `{"name":"n"}{}`: "body: must be one JSON object and nothing after it",
		`{"name":"` + "\xff" + `"}`: "body: must be valid JSON in UTF-8", `{"name":"\ud800"}`: `body: must not contain half of a surrogate pair, such as \ud83d alone`,
		`{"` + "\xff" + `":1}`: "body: must be valid JSON in UTF-8", "{\"name\":\"a\nb\"}": "body: must be valid JSON in UTF-8",
		"\ufeff": "body: must be a JSON object, but is empty", "\ufeff\ufeff{}": "body: must be valid JSON in UTF-8",
		`{"x":` + deep(1000): "body: must not be nested deeper than 1000 levels", `{"name":"n","x":` + deep(999): "x: is unknown",
		`{"x":` + deep(20_000):                "body: must not be nested deeper than 1000 levels",
		`{"x":` + strings.Repeat("[", 20_000): "body: must not be nested deeper than 1000 levels",
		`{"count":007,"name":"n"}`:            "body: must be valid JSON in UTF-8", `{"name":"n"} // c`: "body: must be valid JSON in UTF-8",
	} {
		_, faults := run(o, request(clientID, "", body))
		if got := strings.Join(faults, "; "); got != want {
			t.Errorf("%.80s\n\tis refused as %q\n\tnot %q", body, got, want)
		}
	}
}

// TestCoding verifies that a body with a content coding is UnsupportedEncoding, and that a lenient request with one is
// read if its body is plain JSON. Without a body there is nothing to be coded.
func TestCoding(t *testing.T) {
	o := newOp()
	r := request(clientID, "limit=x", `{"name":"n"}`)
	r.Coding = "gzip"
	err := domain.AsError(o.Input().Bind(o.New(), r))
	if err.Code != domain.UnsupportedEncoding || err.Message != "Content-Encoding must not be gzip; send the body uncompressed" ||
		len(err.Fields) != 1 || err.Fields[0].Field != "Content-Encoding" {
		t.Errorf("got %v %+v", err, err.Fields)
	}
	r = request(clientID, "", "")
	r.Coding = "gzip"
	if _, faults := run(o, r); len(faults) != 1 || faults[0] != "body: must be a JSON object, but is empty" {
		t.Errorf("without a body: got %q", faults)
	}

	for body, want := range map[string]string{
		`{"name":"n"}`: "", "\ufeff" + `{"name":"n"}`: "", `{"name":7}`: "name: must be a string", `[]`: "body: must be a JSON object",
		"\x1f\x8b\x08": "Content-Encoding: must not be br unless the body is plain JSON",
		`{"name":`:     "Content-Encoding: must not be br unless the body is plain JSON",
	} {
		r := request(clientID, "", body)
		r.Coding, r.Lenient = "br", true
		if _, faults := run(o, r); strings.Join(faults, "; ") != want {
			t.Errorf("lenient, %q: got %q, want %q", body, faults, want)
		}
	}
	none := declared[withQuery]("POST", "/o")
	r = request("", "", "\x1f\x8b\x08")
	r.Coding, r.Lenient = "br", true
	if _, faults := run(none, r); faults != nil {
		t.Errorf("lenient, an operation without a body: got %q", faults)
	}
}

// TestBrackets verifies that name[] and name[0] are repetitions of a list, in the order of the numbers, and that other
// brackets after the name of a parameter are a fault, or ignored by a lenient request.
func TestBrackets(t *testing.T) {
	o := newOp()
	other := "cli_01h455vb4pex5vsknk084sn02r"
	for query, want := range map[string]string{
		"ids[]=" + clientID + "&ids[]=" + other:    clientID + " " + other,
		"ids[0]=" + clientID + "&ids[1]=" + other:  clientID + " " + other,
		"ids[10]=" + clientID + "&ids[9]=" + other: other + " " + clientID,
		"ids%5B%5D=" + clientID + "," + other:      clientID + " " + other,
		"ids[1]=" + clientID + "&ids=" + other:     other + " " + clientID,
		"ids[]=":                                   "", "ids[]=x": "", "ids[99999999999999999999999]=" + other: other,
	} {
		in, faults := run(o, request(clientID, query, `{"name":"n"}`))
		if faults != nil || in.(*sample).Query.IDs == nil {
			t.Errorf("%s: got %q", query, faults)
			continue
		}
		var got []string
		for _, id := range in.(*sample).Query.IDs.IDs {
			got = append(got, id.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	const noList, noIndex = ": is not a list; write its name without brackets", "ids: must contain only a number in brackets, such as ids[0]"
	for query, want := range map[string]string{
		"limit[]=5": "limit" + noList, "limit[0]=5": "limit" + noList, "limit[max]=5&limit=5": "limit" + noList, "since[]=": "since" + noList,
		"tint[]=red&draft[0]=true": "tint" + noList + "; draft" + noList,
		"ids[a]=" + clientID:       noIndex, "ids[0][]=" + clientID: noIndex, "ids[-1]=" + clientID: noIndex,
		"unknown[]=1": "", "[]=1": "", "limit]=x": "", "limit[=x": "", "Limit[]=x": "",
	} {
		r := request(clientID, query, `{"name":"n"}`)
		if _, faults := run(o, r); strings.Join(faults, "; ") != want {
			t.Errorf("%s: got %q, want %q", query, faults, want)
		}
		r.Lenient = true
		if in, faults := run(o, r); faults != nil || in.(*sample).Query.IDs != nil || in.(*sample).Query.Limit > 100 {
			t.Errorf("lenient, %s: got %q, %+v", query, faults, in)
		}
	}
	for query, want := range map[string]bool{"ids=": true, "ids[]=": true, "ids[3]=1": true, "ids[a]=1": false, "id[]=1": false, "": false} {
		values, _ := url.ParseQuery(query)
		if got := op.NamesList(values, "ids"); got != want {
			t.Errorf("%s names ids: got %t", query, got)
		}
	}
}

// TestRawPlus verifies that a time or an email address says to write %2B if a plus sign in it arrived as a space.
func TestRawPlus(t *testing.T) {
	type query struct {
		Query struct {
			Since *domain.Time `query:"since"`
			Email string       `query:"email" validate:"omitempty,email"`
			Name  string       `query:"name" validate:"omitempty,max=9"`
		}
	}
	o := declared[query]("GET", "/o")
	const time = "since: must be an RFC 3339 date-time, such as 2026-01-31T08:00:00Z"
	for text, want := range map[string]string{
		"since=2026-01-01T00:00:00+02:00": time + "; write + as %2B", "since=2026-01-01T00:00:00%20-02:00": time, "since=2026-01-01+00:00:00": time,
		"since=2026-01-01T00:00:00%2B02:00": "", "email=a%2Bb@x.example": "", "name=a+b": "", "name=a+long+name": "name: must be at most 9 characters",
		"email=a+b@x.example": "email: must be an email address; write + as %2B", "email=+b@x.example": "email: must be an email address; write + as %2B",
		"email=a+b": "email: must be an email address",
	} {
		if _, faults := run(o, request("", text, "")); strings.Join(faults, "; ") != want {
			t.Errorf("%s: got %q, want %q", text, faults, want)
		}
	}
}

// TestEveryFault: all that is wrong with a request is named at once, each field
// once, in the order of path, query and body.
func TestEveryFault(t *testing.T) {
	o := newOp()
	ids := strings.Repeat(`"x",`, 5)
	for body, want := range map[string]string{
		`{"name":1,"email":"x","count":99,"loud":null,"tint":"green","at":"now","extra":1}`: "limit: must be an integer; " +
			"name: must be a string; loud: must not be null; tint: must be one of red, blue; " +
			"at: must be an RFC 3339 date-time, such as 2026-01-31T08:00:00Z; extra: is unknown; " +
			"email: must be an email address; count: must be at most 9",
		`{"name":"n","name":"m","inners":[{"label":"a","x":1},{"tones":[7,null]}],"inner":{"label":2}}`: "limit: must be an integer; " +
			"name: must be given once; inners[0].x: is unknown; inners[1].tones[0]: must be a string; " +
			"inners[1].tones[1]: must not be null; inner.label: must be a string; inners[1].label: is required",
		`{"name":"n","user_ids":[` + ids + `{"a":[1,2]}],"email":"a\u0000@b.example"}`: "limit: must be an integer; " +
			"email: must not contain a NUL; " +
			"user_ids: must contain at most 4 items",
		`{"name":`: "limit: must be an integer; body: must be valid JSON in UTF-8",
	} {
		_, faults := run(o, request(clientID, "limit=x", body))
		if got := strings.Join(faults, "; "); got != want {
			t.Errorf("%s\n\tis refused as %q\n\tnot %q", body, got, want)
		}
	}

	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `"u%d":1,`, i)
	}
	if _, faults := run(o, request(clientID, "", "{"+many.String()+`"name":"n"}`)); len(faults) != 100 {
		t.Errorf("%d faults are named", len(faults))
	}
	long := strings.Repeat("é", 600)
	if _, faults := run(o, request(clientID, "", `{"name":"n","`+long+`":1}`)); len(faults) != 1 || len(faults[0]) > 520 {
		t.Errorf("a long name is repeated: %.60s", faults)
	}
}

// TestNoBody: an operation without a body refuses one; an older version's does
// not look at it.
func TestNoBody(t *testing.T) {
	o := declared[withQuery]("POST", "/o")
	for _, body := range []string{"{}", " ", "x"} {
		_, faults := run(o, request("", "limit=0", body))
		if got := strings.Join(faults, "; "); got != "body: must be empty; this operation accepts no body; limit: must be between 1 and 500" {
			t.Errorf("%q is refused as %q", body, got)
		}
		r := request("", "", body)
		r.Lenient = true
		if _, faults := run(o, r); faults != nil {
			t.Errorf("%q is refused as %q", body, faults)
		}
	}
}

// TestClean: names and emails of a body or a filter reach the operation as they are stored, and
// the caller's own texts stay as they are.
func TestClean(t *testing.T) {
	type sender struct {
		Sender *string `query:"sender" validate:"omitnil,email"`
	}
	type named struct {
		Query struct {
			Email string `query:"email" validate:"omitempty,email"`
			Name  string `query:"name" validate:"required,name"`
			sender
		}
		Body struct {
			Name    string                  `json:"name" validate:"filled,max=5,name"`
			Nick    domain.Optional[string] `json:"nick,omitzero" validate:"omitnil,max=5,name"`
			Email   string                  `json:"email,omitzero" validate:"omitempty,max=254,email"`
			Manager *string                 `json:"manager,omitzero" validate:"omitnil,max=254,email"`
		}
	}
	o := declared[named]("POST", "/o")
	sent := "B@MÜNCHEN.example"
	in := &named{}
	in.Query.Email, in.Query.Name, in.Query.Sender = "A@Example.COM", " n ", new("B@Example.com")
	in.Body.Name, in.Body.Nick, in.Body.Email, in.Body.Manager = " abcde\n", domain.Give("\u00a0x "), "A@Example.COM", &sent
	out, err := o.Run(scoped(t, domain.Write), in)
	if err != nil {
		t.Fatal(err)
	}
	q, b := out.(*named).Query, out.(*named).Body
	if b.Name != "abcde" || b.Nick.Value != "x" || b.Email != "a@example.com" || *b.Manager != "b@xn--mnchen-3ya.example" {
		t.Errorf("the operation gets %q, %q, %q, %q", b.Name, b.Nick.Value, b.Email, *b.Manager)
	}
	if q.Email != "a@example.com" || q.Name != "n" || *q.Sender != "b@example.com" || sent != "B@MÜNCHEN.example" {
		t.Errorf("the operation gets %+v; the caller's text becomes %q", q, sent)
	}

	for body, want := range map[string]string{
		`{"name":" a\tb "}`:                                "name: must not contain control characters",
		`{"name":"\u200b","nick":"\u0001"}`:                "name: must contain a visible character; nick: must not contain control characters",
		`{"name":"a","email":"a b@c.example"}`:             "email: must be an email address",
		`{"name":"a","manager":"a\u200b@c.example"}`:       "manager: must be an email address",
		`{"name":"a","manager":null,"nick":"  abcde    "}`: "",
	} {
		_, faults := run(o, request("", "name=n", body))
		if got := strings.Join(faults, "; "); got != want {
			t.Errorf("%s is refused as %q, not %q", body, got, want)
		}
	}
	_, faults := run(o, request("", "email=x&name=+", `{"name":"a"}`))
	if got := strings.Join(faults, "; "); got != "email: must be an email address; name: is required" {
		t.Errorf("refused as %q", got)
	}
}

func TestBindQuery(t *testing.T) {
	o := newOp()
	body := `{"name":"n"}`
	for query, want := range map[string]string{
		"": "", "limit=1": "", "limit=500": "", "unknown=1": "", "since=2026-01-01T00:00:00.123456789%2B05:30": "", "ids=": "", "tint=": "", "draft=false": "",
		"Secret=x": "", "Limit=0": "", "Rows=0": "", "limit=5&limit=x": "", "note=": "", "limit=": "", "since=": "", "draft=": "", "cursor=": "",

		"limit=0": "limit: must be between 1 and 500", "limit=501": "limit: must be between 1 and 500", "limit=-1": "limit: must be between 1 and 500",
		"limit=x": "limit: must be an integer", "limit=1.0": "limit: must be an integer", "limit=%2B5": "limit: must be an integer",
		"limit=05": "limit: must be an integer", "limit=-0": "limit: must be an integer", "limit=+5": "limit: must be an integer",
		"draft=maybe": "draft: must be true or false", "draft=1": "draft: must be true or false", "draft=TRUE": "draft: must be true or false",
		"draft=t": "draft: must be true or false", "draft=0": "draft: must be true or false",
		"tint=green": "tint: must be one of red, blue", "tint=RED": "tint: must be one of red, blue", "tint=%00": "tint: must be valid UTF-8 without NUL",
		"note=%ff":                    "note: must be valid UTF-8 without NUL",
		"since=x&draft=maybe&limit=1": "since: must be an RFC 3339 date-time, such as 2026-01-31T08:00:00Z; draft: must be true or false",
	} {
		_, faults := run(o, request(clientID, query, body))
		if got := strings.Join(faults, "; "); got != want {
			t.Errorf("%s is refused as %q, not %q", query, got, want)
		}
	}
}

// TestBindValues: each part comes from its own source, and defaults stand
// where nothing is given.
func TestBindValues(t *testing.T) {
	o := newOp()
	in, faults := run(o, request(clientID, "id=cli_x&name=query&Secret=s&Rows=3&Skip=3&ids="+clientID+"&ids=x,"+clientID+"&note=", `{"name":"n"}`))
	if faults != nil {
		t.Fatal(faults)
	}
	s := in.(*sample)
	if s.Path.ID.String() != clientID || s.Body.Name != "n" || s.Query.Secret != "" || s.Query.Rows != 0 || s.Query.Skip != 0 {
		t.Errorf("bound %+v", s)
	}
	if s.Query.Limit != 100 || !s.Query.Draft || s.Query.Since != nil || s.Query.Note != nil {
		t.Errorf("defaults are %+v", s.Query)
	}
	if s.Query.IDs == nil || len(s.Query.IDs.IDs) != 2 || s.Query.IDs.Given != 3 {
		t.Errorf("ids are %+v", s.Query.IDs)
	}
	if again := o.New().(*sample); again.Query.Limit != 100 || again == s {
		t.Error("New gives no input of its own")
	}
	// A malformed id is no object, and no fault.
	for _, id := range []string{"", "x", "\x00", "\xff", "usr_01h455vb4pex5vsknk084sn02q"} {
		in, faults := run(o, request(id, "", `{"name":"n"}`))
		if faults != nil || !in.(*sample).Path.ID.IsZero() {
			t.Errorf("the id %q is bound as %v, %v", id, in, faults)
		}
	}
	if _, faults := run(o, request("x", "limit=0", `{"name":"n"}`)); len(faults) != 1 {
		t.Errorf("a malformed id hides other faults: %v", faults)
	}
}

// TestLenient: an older version's bodies may hold anything more.
func TestLenient(t *testing.T) {
	o := newOp()
	r := request(clientID, "", `{"name":"n","unknown":{"a":[1]},"name":"m","tint":null,"loud":null,"email":null}`)
	r.Lenient = true
	in, faults := run(o, r)
	if faults != nil || in.(*sample).Body.Name != "m" {
		t.Errorf("bound %+v, %v", in, faults)
	}
	r.Body = []byte(`{"name":"\u0000"}`)
	if _, faults := run(o, r); len(faults) != 1 {
		t.Errorf("a NUL is taken: %v", faults)
	}
}

func TestOptional(t *testing.T) {
	type body struct {
		Firm  domain.Optional[string]  `json:"firm,omitzero"`
		Loose domain.Optional[*string] `json:"loose,omitzero"`
	}
	type in struct{ Body body }
	described := op.Describe(reflect.TypeFor[in]())
	for text, want := range map[string]body{
		`{"firm":""}`:    {Firm: domain.Give("")},
		`{"firm":"x"}`:   {Firm: domain.Give("x")},
		`{"loose":null}`: {Loose: domain.Give[*string](nil)},
		`{"loose":"x"}`:  {Loose: domain.Give(new("x"))},
	} {
		got := &in{}
		if err := described.Bind(got, request("", "", text)); err != nil || !reflect.DeepEqual(got.Body, want) {
			t.Errorf("%s is %+v, %v", text, got.Body, err)
		}
	}
	for text, want := range map[string]string{
		`{}`: "body must name at least one field to change", `{"loos":1}`: "loos is unknown",
		`{"firm":null}`: "firm must not be null", `{"firm":1}`: "firm must be a string", `{"loose":1}`: "loose must be a string", `{"loose":{}}`: "loose must be a string",
	} {
		if err := described.Bind(&in{}, request("", "", text)); domain.AsError(err).Message != want {
			t.Errorf("%s is %v, not %s", text, err, want)
		}
	}
}
