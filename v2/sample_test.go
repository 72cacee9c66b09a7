package v2_test

import (
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/domain/rule"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// world is a service with one partner that has a client with a user: enough to
// send a sample request to every operation of the set.
type world struct {
	*v2test.Harness
	tenant v2test.Partner
	client api.Client
	user   api.User
	// sampled numbers the samples.
	sampled *atomic.Int64
	// parts are what the client has besides users.
	parts *parts
	// release is the one that is served; zero for the latest.
	release op.Release
}

func newWorld(t *testing.T, o v2test.Options) *world {
	w := &world{Harness: v2test.New(t, o), sampled: &atomic.Int64{}, release: o.Release}
	w.tenant = w.AddPartner("Partner")
	w.client = w.AddClient(w.tenant, "Client")
	w.user = w.AddUser(w.tenant, w.client.ID, "first@example.com")
	w.parts = furnish(w.Harness, w.client.ID, w.user.ID, 100)
	return w
}

// in is the world for a subtest.
func (w *world) in(t *testing.T) *world {
	h := *w.Harness
	h.T = t
	return &world{Harness: &h, tenant: w.tenant, client: w.client, user: w.user, sampled: w.sampled, parts: w.parts, release: w.release}
}

// ids are the texts of the path parameters by their names.
type ids map[string]string

// ids are those of the world's objects, with another collection and another
// policy each time, up to 100: some operations succeed once with each.
func (w *world) ids() ids { return w.parts.with(w.client.ID, w.user.ID) }

// strangers are well-formed ids that identify nothing.
func strangers() ids {
	return ids{
		"client_id": "cli_01h455vb4pex5vsknk084sn02q", "user_id": "usr_01h455vb4pex5vsknk084sn02q",
		"collection_id": "col_01h455vb4pex5vsknk084sn02q", "policy_id": "pol_01h455vb4pex5vsknk084sn02q", "breach_name": "Unknown",
		"assignment_id": "fwa_01h455vb4pex5vsknk084sn02q", "report_id": "rep_01h455vb4pex5vsknk084sn02q",
		"course_id": "crs_01h455vb4pex5vsknk084sn02q", "webhook_id": "whk_01h455vb4pex5vsknk084sn02q", "delivery_id": "dlv_01h455vb4pex5vsknk084sn02q",
		"result_id": "phr_01h455vb4pex5vsknk084sn02q", "field": "last_name",
	}
}

// idOf is an id, or the one that a path ends in.
func idOf[K domain.Kind](t testing.TB, text string) domain.ID[K] {
	t.Helper()
	id, err := domain.ParseID[K](text[strings.LastIndex(text, "/")+1:])
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// pathOf returns the address of a request to the operation: its path, the query's
// parameters that are given, "name=text" each, and samples of the others that the
// operation requires. A path parameter that has no id here fails the test: give the new
// kind of object one in ids.
func pathOf(t *testing.T, o op.Declaration, ids ids, query ...string) string {
	t.Helper()
	segments := strings.Split(o.Meta().Path, "/")
	for i, s := range segments {
		if name, ok := strings.CutPrefix(s, ":"); ok {
			if ids[name] == "" {
				t.Fatalf("operation %s: the tests have no %s", o.Meta().ID, name)
			}
			segments[i] = ids[name]
		}
	}
	path := "/v2" + strings.Join(segments, "/")
	if query = append(required(t, o, query), query...); len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	return path
}

// required returns samples of the query's parameters that the operation requires and
// that are not given.
func required(t *testing.T, o op.Declaration, given []string) (query []string) {
	for _, p := range o.Input().Query {
		named := func(text string) bool { return strings.HasPrefix(text, p.Name+"=") }
		if isRequired(p) && !slices.ContainsFunc(given, named) {
			texts := filterTexts(t, p)
			query = append(query, p.Name+"="+texts[len(texts)-1])
		}
	}
	return query
}

func isRequired(p op.Param) bool {
	return slices.Contains(strings.Split(p.Tag.Get("validate"), ","), "required")
}

// send sends a sample request.
func (w *world) send(o op.Operation, key string, at ids, headers ...string) v2test.Response {
	w.T.Helper()
	var body any
	if o.Input().Body != nil {
		body = w.body(o)
	}
	return w.Do(o.Meta().Method, pathOf(w.T.(*testing.T), o, at), key, body, headers...)
}

// body is a valid body for the operation, new each time. It has every member
// that the operation takes in the release.
func (w *world) body(o op.Operation) map[string]any {
	body, n := map[string]any{}, w.sampled.Add(1)
	for _, m := range members(o) {
		if instead := o.Meta().ID == "phishing.sends.cancel_many" && m.name == "label"; w.release.Includes(m.since) && !instead {
			body[m.name] = w.sample(m, n)
		}
	}
	return body
}

// member is one member of a body.
type member struct {
	name  string
	typ   reflect.Type // of the value
	rules []string
	since string
	// null says that null is a value, and optional that the member is an Optional.
	null, optional bool
}

// members are those of the operation's body.
func members(o op.Declaration) (list []member) {
	body := o.Input().Body
	if body == nil {
		return nil
	}
	for i := range body.NumField() {
		f := body.Field(i)
		m := member{name: rule.WireName(f), typ: f.Type, rules: strings.Split(f.Tag.Get("validate"), ","), since: f.Tag.Get("since")}
		if element, nullable := rule.OptionalElement(f.Type); element != nil {
			m.typ, m.null, m.optional = element, nullable, true
		} else if f.Type.Kind() == reflect.Pointer {
			m.typ, m.null = f.Type.Elem(), true
		}
		list = append(list, m)
	}
	return list
}

func (m member) has(rule string) bool { return slices.Contains(m.rules, rule) }

// max is how many characters or items the member may hold; 0 for no bound.
func (m member) max() int {
	for _, rule := range m.rules {
		if text, ok := strings.CutPrefix(rule, "max="); ok {
			n, _ := strconv.Atoi(text)
			return n
		}
	}
	return 0
}

func (m member) enum() []string {
	if e, ok := reflect.Zero(m.typ).Interface().(rule.Enum); ok {
		return e.Values()
	}
	return nil
}

func (w *world) sample(m member, n int64) any {
	switch {
	case m.typ == reflect.TypeFor[[]domain.UserID](): // as many times as makes the samples differ
		return slices.Repeat([]string{w.user.ID.String()}, int(n%50)+1)
	case m.typ == reflect.TypeFor[[]domain.ResultID](): // each sample another one
		return []string{w.parts.results[n%int64(len(w.parts.results))].String()}
	case m.typ == reflect.TypeFor[[]domain.ClientID]():
		return []string{w.client.ID.String()}
	case m.typ == reflect.TypeFor[[]domain.EventType]():
		return domain.EventTypes[:n%int64(len(domain.EventTypes))+1]
	case m.has("endpoint"):
		return fmt.Sprintf("https://sample%d.example.com/hook", n)
	case m.typ == reflect.TypeFor[domain.CourseID]():
		return domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: 1}.String()
	case m.typ == reflect.TypeFor[domain.TemplateID]():
		return w.parts.template.String()
	case m.typ == reflect.TypeFor[api.Audience]():
		last := int64(len(w.parts.collections)) - 1 // ids begins with the first, which an operation may have deleted
		return map[string]any{"type": "collection", "collection_id": w.parts.collections[last-n%(last+1)].String()}
	case m.typ == reflect.TypeFor[api.AssignModules]():
		return map[string]any{"training": true, "phishing": false, "policies": true, "reporting": false}
	case m.name == "framework_id": // another one where the audiences come again
		return domain.Frameworks[n/int64(len(w.parts.collections))%int64(len(domain.Frameworks))].ID
	case m.typ == reflect.TypeFor[api.ReportPeriod](): // each sample another one
		end := domain.DateOf(w.Clock.Now())
		return map[string]any{"start_on": end.AddDays(-int(n % 300)).String(), "end_on": end.String()}
	case m.typ == reflect.TypeFor[domain.Date]():
		return domain.DateOf(w.Clock.Now()).AddDays(int(n)).String()
	case m.typ == reflect.TypeFor[domain.Time]():
		return w.Clock.Now().Add(time.Duration(n) * time.Minute).Format(time.RFC3339)
	case m.enum() != nil:
		return m.enum()[0]
	case m.has("email"):
		return fmt.Sprintf("sample%d@example.com", n)
	case m.typ.Kind() == reflect.String:
		return fmt.Sprintf("Sample %d", n)
	case m.typ.Kind() == reflect.Bool:
		return false
	case m.typ.Kind() == reflect.Slice:
		return []any{}
	}
	panic(fmt.Sprintf("the tests have no sample of %s, a %s", m.name, m.typ))
}

// each runs a subtest for every operation of the set.
func (w *world) each(t *testing.T, fn func(t *testing.T, w *world, o op.Operation)) {
	for _, o := range w.API.Set.All() {
		t.Run(o.Meta().ID, func(t *testing.T) { fn(t, w.in(t), o) })
	}
}

// checkError holds a response against what every error of v2 must look like.
func checkError(t *testing.T, r v2test.Response, code domain.Code) v2test.Response {
	t.Helper()
	if r.Status != op.StatusOf(code) || r.Code() != code {
		t.Fatalf("answered %d %s, not %d %s: %s", r.Status, r.Code(), op.StatusOf(code), code, r.Body)
	}
	id := r.Header.Get("X-Request-Id")
	if id == "" || r.Field("error.request_id") != id {
		t.Errorf("the request id is %q in the header and %v in the body", id, r.Field("error.request_id"))
	}
	if message, _ := r.Field("error.message").(string); message == "" {
		t.Errorf("no message: %s", r.Body)
	}
	if fields, given := r.JSON()["error"].(map[string]any)["fields"].([]any); given && len(fields) == 0 {
		t.Errorf("fields are there and empty: %s", r.Body)
	}
	checkHeaders(t, r)
	wait, err := strconv.Atoi(r.Header.Get("Retry-After"))
	needed := code == domain.RateLimited || code == domain.Unavailable
	if needed && (err != nil || wait < 1 || wait > 61) {
		t.Errorf("Retry-After is %q", r.Header.Get("Retry-After"))
	}
	return r
}

// checkHeaders holds a response against what every response must carry.
func checkHeaders(t *testing.T, r v2test.Response) {
	t.Helper()
	if r.Header.Get("X-Request-Id") == "" {
		t.Error("no X-Request-Id")
	}
	for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
		if n, err := strconv.ParseInt(r.Header.Get(name), 10, 64); err != nil || n < 0 {
			t.Errorf("%s is %q", name, r.Header.Get(name))
		}
	}
	if kind := r.Header.Get("Content-Type"); r.Status != http.StatusNoContent && kind != "application/json; charset=utf-8" {
		t.Errorf("Content-Type is %q", kind)
	}
}

// number reads a numeric header.
func number(t *testing.T, r v2test.Response, name string) int {
	t.Helper()
	n, err := strconv.Atoi(r.Header.Get(name))
	if err != nil {
		t.Fatalf("%s is %q", name, r.Header.Get(name))
	}
	return n
}

// nextCursor is a cursor in a body. No two of them are equal.
var nextCursor = regexp.MustCompile(`("next_cursor":)"[^"]+"`)

// anonymous is a body without its request id and the text of its cursor.
func anonymous(r v2test.Response) string {
	return nextCursor.ReplaceAllString(strings.ReplaceAll(string(r.Body), r.Header.Get("X-Request-Id"), "ID"), `$1"C"`)
}
