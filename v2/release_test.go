package v2_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/mcp"
	"partnerapi/v2/op/openapi/openapitest"
	"partnerapi/v2/v2test"
)

var releases = []op.Release{op.V2_0, op.V2_1, op.V2_2, op.V2_3, op.V2_4, op.V2_5}

// kept returns the validator of the document that was kept when the release was first served.
func kept(t *testing.T, release op.Release) *openapitest.Validator {
	return openapitest.Shared(t, "kept v2 "+release.String(), func() (*openapi3.T, error) {
		return openapi3.NewLoader().LoadFromFile("../tools/openapi/baseline/v2-" + release.String() + ".yaml")
	})
}

// sameButLater verifies that a value of a release equals that of a later one, except for members that only the later one
// has.
func sameButLater(here, later any) error {
	switch here := here.(type) {
	case map[string]any:
		later, _ := later.(map[string]any)
		for name, value := range here {
			other, ok := later[name]
			if !ok {
				return fmt.Errorf("%s is not in the later release", name)
			}
			if err := sameButLater(value, other); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	case []any:
		later, _ := later.([]any)
		if len(here) != len(later) {
			return fmt.Errorf("%d items, in the later release %d", len(here), len(later))
		}
		for i, item := range here {
			if err := sameButLater(item, later[i]); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		return nil
	}
	if !reflect.DeepEqual(here, later) {
		return fmt.Errorf("%v, in the later release %v", here, later)
	}
	return nil
}

// decoded returns a response's JSON, without what differs between two requests.
func decoded(t *testing.T, r v2test.Response) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(anonymous(r)), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestReleases verifies that each release serves exactly its own operations and fields: operations of later releases
// return what unknown paths return, responses over HTTP and MCP are those of the release's kept document, closed, and
// values are those of the latest release.
func TestReleases(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t, worldtest.Schema)
	limits := v2test.Unlimited
	latest := newWorld(t, v2test.Options{URL: url, Limits: limits})
	for _, release := range releases {
		t.Run(release.String(), func(t *testing.T) {
			served := 0
			h := v2test.New(t, v2test.Options{
				URL: url, Release: release, Limits: limits, Keys: latest.Keys, MCP: &mcp.Config{},
				Wrap: func(_ *v2test.Harness, base http.RoundTripper) http.RoundTripper {
					return kept(t, release).Wrap(t, base)
				},
			})
			unknown := anonymous(checkError(t, h.Get("/v2/unknown", latest.tenant.Key), domain.NotFound))
			w := &world{Harness: h, tenant: latest.tenant, client: latest.client, user: latest.user, sampled: latest.sampled, parts: latest.parts, release: release}
			tools := w.toolSession(t)
			w.each(t, func(t *testing.T, w *world, o op.Operation) {
				if o.Meta().Since > release {
					for _, at := range []ids{w.ids(), strangers()} {
						if got := anonymous(checkError(t, w.send(o, w.tenant.Key, at), domain.NotFound)); got != unknown {
							t.Errorf("answers %s\nnot as an unknown path: %s", got, unknown)
						}
					}
					checkError(t, w.send(o, "", w.ids()), domain.Unauthorized)
					return
				}
				served++
				l := latest.in(t)
				if o.Meta().Method != "GET" {
					w.send(o, w.tenant.Key, w.ids()).Want(o.Meta().Status)
					return
				}
				for _, query := range [][]string{nil, {"limit=0"}, {"limit=1"}, {"sort=-created_at"}} {
					at := w.ids()
					path := pathOf(t, o, at, query...)
					if slices.Equal(query, []string{"sort=-created_at"}) && sortSince(o) > release.String() {
						continue // ignored here, and no order of the later release
					}
					here, there := w.Get(path, w.tenant.Key), l.Get(path, w.tenant.Key)
					if here.Status != there.Status {
						t.Fatalf("%s %v returns %d in %s and %d in the latest", o.Meta().ID, query, here.Status, release, there.Status)
					}
					if o.Meta().ID == "key.get" { // names the release
						continue
					}
					if err := sameButLater(decoded(t, here), decoded(t, there)); err != nil {
						t.Errorf("%s %v in %s: %v", o.Meta().ID, query, release, err)
					}
					if query == nil && tools != nil {
						w.sameByTool(t, tools, o, at, here)
					}
				}
			})
			if release == op.V2_0 && served != 3 {
				t.Errorf("serves %d operations", served)
			}
		})
	}
}

// sortSince returns the release that added the parameter sort to an operation that earlier releases have; otherwise "".
func sortSince(o op.Operation) string {
	for _, p := range o.Input().Query {
		if p.Name == "sort" {
			return p.Tag.Get("since")
		}
	}
	return ""
}

// toolSession opens a session with all tools and schemas; nil if the release has no MCP server.
func (w *world) toolSession(t *testing.T) *sdk.ClientSession {
	if w.release < mcp.Since {
		return nil
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	carrier := &sdk.StreamableClientTransport{
		Endpoint: w.URL + mcp.Path + "?toolsets=all&schemas=1", HTTPClient: w.Caller(w.tenant.Key).HTTP(), MaxRetries: -1,
	}
	session, err := client.Connect(t.Context(), carrier, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// sameByTool verifies that the tool of an operation returns what the response over HTTP has.
func (w *world) sameByTool(t *testing.T, tools *sdk.ClientSession, o op.Operation, at ids, response v2test.Response) {
	t.Helper()
	arguments := map[string]any{}
	for name, id := range at {
		if strings.Contains(o.Meta().Path, ":"+name) {
			arguments[name] = id
		}
	}
	for _, text := range required(t, o, nil) {
		name, value, _ := strings.Cut(text, "=")
		arguments[name] = value
	}
	out, err := tools.CallTool(t.Context(), &sdk.CallToolParams{Name: strings.ReplaceAll(o.Meta().ID, ".", "_"), Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	got, want := out.StructuredContent, decoded(t, response)
	if page, ok := got.(map[string]any); ok && page["page"] != nil { // cursors differ
		page["page"], want.(map[string]any)["page"] = nil, nil
	}
	if out.IsError || !reflect.DeepEqual(got, want) {
		t.Errorf("the tool returns\n%v\nand HTTP\n%v", got, want)
	}
}

// TestLaterInputs verifies that a release knows no later parameters and members of bodies: parameters are ignored, also by
// cursors, and members are rejected by name. So are later fields of MCP's rows.
func TestLaterInputs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Release: op.V2_3, Limits: v2test.Unlimited, MCP: &mcp.Config{}})
	w.AddClient(w.tenant, "Another")
	first := w.Get("/v2/clients?limit=1&external_id=none", w.tenant.Key).Want(http.StatusOK)
	cursor, _ := first.Field("page.next_cursor").(string)
	if rows := w.Get("/v2/clients?limit=1&external_id=other&cursor="+cursor, w.tenant.Key).Want(http.StatusOK); len(rawItems(rows)) != 1 {
		t.Errorf("the page after %s is %s", first.Body, rows.Body)
	}

	for _, order := range []string{"last_name", "-last_name", "nope"} { // all but the last are of a later release
		r := w.Get("/v2/clients/"+w.client.ID.String()+"/users?sort="+order, w.tenant.Key)
		checkInvalid(t, r, "sort", "must be one of created_at")
		if strings.Contains(string(r.Body), "last_name") || strings.Count(string(r.Body), `"sort"`) != 1 {
			t.Errorf("sort=%s is rejected by %s", order, r.Body)
		}
	}

	rejected := 0
	w.dryRuns(t, func(t *testing.T, w *world, o op.Operation) {
		if o.Meta().ID == "frameworks.assign" { // has had it from the first
			return
		}
		rejected++
		r := checkError(t, w.Do("POST", pathOf(t, o, w.ids()), w.tenant.Key, w.dry(o), "Idempotency-Key", o.Meta().ID), domain.InvalidRequest)
		if got := fmt.Sprint(r.Field("error.fields")); got != "[map[field:dry_run message:is unknown]]" {
			t.Errorf("the faults are %s", got)
		}
	})
	if rejected != 3 {
		t.Errorf("%d operations reject dry_run, not 3", rejected)
	}

	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: w.URL + mcp.Path + "?toolsets=all", HTTPClient: w.Caller(w.tenant.Key).HTTP(), MaxRetries: -1,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, call := range []sdk.CallToolParams{
		{Name: "users_list", Arguments: map[string]any{"client_id": w.client.ID, "fields": []string{"id", "phishing.sent"}}},
		{Name: "clients_list", Arguments: map[string]any{"external_id": "none"}},
		{Name: "training_remind", Arguments: map[string]any{"client_id": w.client.ID, "dry_run": true}},
	} {
		if out, err := session.CallTool(t.Context(), &call); err != nil || !out.IsError {
			t.Errorf("%s takes %v: %v", call.Name, call.Arguments, err)
		}
	}
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		properties, _ := tool.InputSchema.(map[string]any)["properties"].(map[string]any)
		if tool.Name != "frameworks_assign" && properties["dry_run"] != nil || tool.Name == "clients_list" && properties["external_id"] != nil {
			t.Errorf("%s has the arguments %v", tool.Name, properties)
		}
	}
}

// TestEventsOfRelease verifies that an event of each type is published in the release that is served: that which serve
// recorded, or else the API's own.
func TestEventsOfRelease(t *testing.T) {
	t.Parallel()
	for _, recorded := range []string{"", "2.3", "9.9"} {
		t.Run(recorded, func(t *testing.T) {
			t.Parallel()
			h := v2test.New(t, v2test.Options{Demo: true, Limits: v2test.Unlimited, Release: op.V2_5})
			want := op.V2_5
			if recorded != "" {
				if err := h.DB.RecordRelease(t.Context(), recorded); err != nil {
					t.Fatal(err)
				}
			}
			if recorded == "2.3" {
				want = op.V2_3
			}
			e := v2test.NewExamples(h, "api/examples", false)
			d := newDemo(t, h, e)
			h.Publish()
			before := h.Number("SELECT coalesce(max(position), 0) FROM published_events")
			happenings := d.happenings(t, h, e)
			for _, p := range happenings {
				p.do()
				h.Publish()
			}
			seen := map[string]bool{}
			for n := before + 1; n <= h.Number("SELECT max(position) FROM published_events"); n++ {
				body := h.Text("SELECT coalesce((SELECT body FROM published_events WHERE position = $1), '')", n)
				if body == "" {
					continue
				}
				if err := kept(t, want).EventViolation([]byte(body)); err != nil {
					t.Errorf("%s: %v", body, err)
				}
				var event struct{ Type string }
				if err := json.Unmarshal([]byte(body), &event); err != nil {
					t.Fatal(err)
				}
				seen[event.Type] = true
			}
			if len(seen) != len(happenings) {
				t.Errorf("events of %d types, not %d", len(seen), len(happenings))
			}
		})
	}
}
