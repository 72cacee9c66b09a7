package v1compat

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/db/dbtest"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/idmap/idmaptest"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi/openapitest"
	"partnerapi/v2/v2test"
)

// noon is when tests begin.
var noon = v2test.Noon

// unusedID is the UUID of no object, and unnumbered the number of none.
const (
	unusedID   = "01980000-0000-7000-8000-000000000000"
	unnumbered = "2147483647"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// service is both versions of the interface. Every response of either is held against its
// document, and one of v1's own routes against the kept document too.
type service struct {
	*v2test.Harness
	registry *idmap.Registry
	usage    *usage.Counter
	facade   *Facade
	// retirement is what commands change; the service follows when keeper reloads.
	retirement *retire.Store
	keeper     *retire.Keeper
}

// setup says what differs from the usual: a registry without cache, and
// checkpoints in memory.
type setup struct {
	v2test.Options
	cached int
	store  Store
}

func start(t testing.TB, o setup) *service {
	t.Helper()
	s := &service{}
	if o.URL == "" {
		o.Schema = idmaptest.Schema
	}
	if o.Limits.PerKey == 0 {
		o.Limits = v2test.Unlimited
	}
	o.Mount = func(h *v2test.Harness) error {
		s.registry = idmap.New(h.DB.DB, o.cached)
		s.usage = usage.New(h.DB.DB, h.Clock, h.Edge.Log)
		s.retirement = retire.NewStore(h.DB.DB, h.Clock)
		var err error
		if s.keeper, err = retire.NewKeeper(context.Background(), s.retirement); err != nil {
			return err
		}
		s.facade = New(h.API, Config{
			Registry: s.registry, Store: o.store, Clock: h.Clock, Release: cmp.Or(o.Release, op.Latest), Usage: s.usage,
			Keeper: s.keeper,
		})
		return s.facade.Mount(h.Edge, h.Engine)
	}
	o.Wrap = func(_ *v2test.Harness, base http.RoundTripper) http.RoundTripper {
		release := cmp.Or(o.Release, op.Latest)
		served := openapitest.Shared(t, "v1 "+release.String(), s.facade.Document).Wrap(t, base)
		kept := openapitest.Shared(t, keptFile, keptDocument).Wrap(t, served)
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if s.isAdditive(r.URL.Path) {
				return served.RoundTrip(r)
			}
			return kept.RoundTrip(r)
		})
	}
	s.Harness = v2test.New(t, o.Options)
	return s
}

// keptFile is the file of keptDocument.
const keptFile = "tools/openapi/baseline/v1.yaml"

// keptDocument is v1's document as tools/openapi keeps it, from which integrators made their
// programs: no answer may hold what it does not name. It allows 410 here, which it does not
// have: tests of phases want that status, and all others another.
func keptDocument() (*openapi3.T, error) {
	document, err := openapi3.NewLoader().LoadFromFile("../" + keptFile)
	if err != nil {
		return nil, err
	}
	body := openapi3.NewResponse().WithDescription("gone").WithJSONSchema(openapi3.NewSchema())
	for _, item := range document.Paths.Map() {
		for _, operation := range item.Operations() {
			operation.Responses.Set("410", &openapi3.ResponseRef{Value: body})
		}
	}
	return document, nil
}

// isAdditive reports whether a path is that of a route which v1's own document lacks.
func (s *service) isAdditive(path string) bool {
	return slices.ContainsFunc(s.facade.routes, func(r *route) bool { return r.Additive && path == "/v1"+r.Path })
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// number is the number that v1 knows a client by.
func (s *service) number(id domain.ClientID) string { return s.numberOf(idmap.Client, idmap.UUID(id)) }

func (s *service) numberOf(kind idmap.Kind, id idmap.UUID) string {
	s.T.Helper()
	key := idmap.IDKey{Kind: kind, ID: id}
	found, err := s.registry.Numbers(context.Background(), []idmap.IDKey{key})
	if err != nil || found[key] == 0 {
		s.T.Fatalf("the number of %s %x: %v", kind, id, err)
	}
	return strconv.FormatInt(found[key], 10)
}

// insertClient adds a client that has nothing but its row, and counts it.
func (s *service) insertClient(partner domain.PartnerID, id domain.ClientID, name string, created time.Time) {
	s.T.Helper()
	s.Exec(`INSERT INTO clients (id, partner_id, name, name_key, summarized_at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $6)`, id, partner, name, domain.SortKey(name), s.Clock.Now(), created)
	s.CountClients()
}

// insertReport adds a report that is ready.
func (s *service) insertReport(client domain.ClientID, id domain.ReportID, created time.Time) {
	s.T.Helper()
	s.Exec(`INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at)
		VALUES ($1, $2, 'policy', 'pdf', 'ready', $3, $3)`, client, id, created)
}

// insertTemplate makes the catalogue have a template.
func (s *service) insertTemplate(n byte) domain.TemplateID {
	s.T.Helper()
	id := domain.TemplateID{0: 7, 15: n}
	s.Exec(`INSERT INTO phishing_templates (id, name, language, category, subject, from_address, html, body, created_at)
		VALUES ($1, $2, 'en', 'it', 'Sample', 'it@example.com', '', '', $3) ON CONFLICT DO NOTHING`, id, fmt.Sprint("Sample ", n), noon)
	return id
}

// insertUser adds a user that has nothing but its row, and counts it.
func (s *service) insertUser(client domain.ClientID, id domain.UserID, status domain.UserStatus, created time.Time) {
	s.T.Helper()
	s.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
		VALUES ($1, $2, $3, 'Ada', 'Example', 'ada example', $4, 'standard', 'en', 'api', 750, $5, $5)`,
		client, id, id.UUID()+"@example.com", status, created)
	s.count(client, status, 1)
}

func (s *service) count(client domain.ClientID, status domain.UserStatus, by int) {
	s.T.Helper()
	s.Exec("UPDATE clients SET users_"+string(status)+" = users_"+string(status)+" + $2 WHERE id = $1", client, by)
}

func (s *service) archive(client domain.ClientID) {
	s.T.Helper()
	s.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", client)
	s.CountClients()
}

// page is any list of v1.
type page struct {
	Items  []map[string]any `json:"items"`
	Limit  int              `json:"limit"`
	Offset int              `json:"offset"`
	Total  int              `json:"total"`
}

func (s *service) list(path, key string) page {
	s.T.Helper()
	var p page
	s.Get(path, key).Want(http.StatusOK).Into(&p)
	return p
}

// texts are the values of one member of the items.
func (p page) texts(member string) []string {
	list := make([]string, len(p.Items))
	for i, item := range p.Items {
		list[i], _ = item[member].(string)
	}
	return list
}

func (s *service) route(id string) *route {
	s.T.Helper()
	i := slices.IndexFunc(s.facade.routes, func(r *route) bool { return r.ID == id })
	if i < 0 {
		s.T.Fatalf("%s is no route", id)
	}
	return s.facade.routes[i]
}
