package v1compat

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
)

// exchangeAnswer is the body of an exchange's answer, ids as they are written.
type exchangeAnswer struct {
	Items []struct {
		V1 jsontext.Value `json:"v1"`
		V2 jsontext.Value `json:"v2"`
	} `json:"items"`
	Invalid []jsontext.Value `json:"invalid"`
}

// answered exchanges ids.
func (s *service) answered(key, kind string, ids []string) (a exchangeAnswer) {
	s.T.Helper()
	body := s.exchange(key, kind, ids...).Want(200).Body
	if err := json.Unmarshal(body, &a, jsontext.AllowDuplicateNames(true)); err != nil {
		s.T.Fatal(err)
	}
	return a
}

// shown are the ids that a list shows, as they are written, by when their objects
// were created. list is the path of a member to the list.
func (s *service) shown(key, path, list, id, created string) map[int64]string {
	s.T.Helper()
	var body map[string]jsontext.Value
	var items []map[string]jsontext.Value
	s.Get(path, key).Want(200).Into(&body)
	if err := json.Unmarshal(body[list], &items); err != nil {
		s.T.Fatal(err)
	}
	ids := map[int64]string{}
	for _, item := range items {
		var at time.Time
		if err := json.Unmarshal(item[created], &at); err != nil {
			s.T.Fatal(err)
		}
		ids[at.Unix()] = string(item[id])
	}
	if len(ids) != len(items) {
		s.T.Fatalf("%s: some were created in the same second", path)
	}
	return ids
}

// pairsShown are the ids of what both versions list, in v1 and in v2, by kind.
func (s *service) pairsShown(key string, clients []domain.ClientID) map[string][][2]string {
	s.T.Helper()
	pairs := map[string][][2]string{}
	compare := func(kind string, old, newer map[int64]string) {
		s.T.Helper()
		if len(old) != len(newer) || len(old) == 0 {
			s.T.Fatalf("%s: v1 shows %v, v2 %v", kind, old, newer)
		}
		for at, id := range old {
			pairs[kind] = append(pairs[kind], [2]string{id, newer[at]})
		}
	}
	compare("client", s.shown(key, "/v1/clients?limit=50", "items", "id", "created_date"), s.shown(key, "/v2/clients", "data", "id", "created_at"))
	compare("admin", s.shown(key, "/v1/partner", "admins", "id", "created_date"), s.shown(key, "/v2/partner", "admins", "id", "created_at"))
	for _, client := range clients {
		its, itsV2 := "/v1/clients/"+s.number(client), "/v2/clients/"+client.String()
		for kind, of := range map[string]struct{ path, id string }{
			"user": {"/users", "id"}, "collection": {"/collections", "id"}, "policy": {"/policies", "id"}, "report": {"/reports", "report_id"},
		} {
			compare(kind, s.shown(key, its+of.path, "items", of.id, "created_date"), s.shown(key, itsV2+of.path, "data", "id", "created_at"))
		}
		compare("group", s.shown(key, its+"/policies", "items", "scope_id", "created_date"), s.shown(key, itsV2+"/policies", "data", "scope_id", "created_at"))
	}
	return pairs
}

// TestExchangeIsABijection: whatever ids of the objects that both versions show
// are given in whatever order, each object is one item, with the ids that the
// versions show; its ids are exchanged for each other, also after numbers were
// imported.
func TestExchangeIsABijection(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	random := rand.New(rand.NewPCG(11, 4))
	tenant := s.Tenant("Partner")
	var clients []domain.ClientID
	for i := range 3 {
		s.Clock.Advance(time.Second)
		client := s.Client(tenant, fmt.Sprint("Client ", i)).ID
		clients = append(clients, client)
		for range 2 + random.IntN(4) {
			s.Clock.Advance(time.Second)
			s.objectsAt(client)
		}
		s.Exec(`INSERT INTO admins (id, partner_id, email, name, role, created_at)
			VALUES ($1, $2, $3, 'An Admin', 'owner', $4)`, db.NewID[domain.AdminKind](), tenant.ID, fmt.Sprint(i, "@example.com"), s.Clock.Now())
	}
	for range 3 {
		for kind, pairs := range s.pairsShown(tenant.Key, clients) {
			s.bijective(random, tenant.Key, kind, pairs)
		}
		s.renumber(random)
	}
}

// bijective exchanges ids of both versions in a random order.
func (s *service) bijective(random *rand.Rand, key, kind string, pairs [][2]string) {
	s.T.Helper()
	if len(pairs) == 0 {
		s.T.Fatalf("no %s is shown", kind)
	}
	partner, ids := map[string]string{}, []string{}
	for _, p := range pairs {
		partner[p[0]], partner[p[1]] = p[1], p[0]
		ids = append(ids, p[random.IntN(2)])
		if random.IntN(3) == 0 {
			ids = append(ids, p[0], p[1])
		}
	}
	random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	a := s.answered(key, kind, ids)
	if len(a.Items) != len(pairs) || len(a.Invalid) != 0 {
		s.T.Errorf("%s %v: %d items of %d, invalid %v", kind, ids, len(a.Items), len(pairs), a.Invalid)
	}
	var order []string
	for _, id := range ids {
		if !slices.Contains(order, id) && !slices.Contains(order, partner[id]) {
			order = append(order, id)
		}
	}
	for i, item := range a.Items {
		old, newer := string(item.V1), string(item.V2)
		if partner[old] != newer || partner[newer] != old || old != order[i] && newer != order[i] {
			s.T.Errorf("%s: item %d of %v is %s and %s", kind, i, ids, old, newer)
		}
	}
}

// objectsAt adds one of each kind to a client, created now.
func (s *service) objectsAt(client domain.ClientID) {
	s.T.Helper()
	now, group := s.Clock.Now(), db.NewID[domain.GroupKind]()
	s.insertUser(client, db.NewID[domain.UserKind](), domain.Active, now)
	s.insertReport(client, db.NewID[domain.ReportKind](), now)
	s.Exec(`INSERT INTO collections (client_id, id, name, name_key, created_by, created_at, updated_at)
		VALUES ($1, $2, $3, $3, 'api', $4, $4)`, client, db.NewID[domain.CollectionKind](), group.String(), now)
	s.Exec("INSERT INTO groups (client_id, id, name, manual, created_at) VALUES ($1, $2, 'g', false, $3)", client, group, now)
	s.addPolicy(client, domain.GroupScope, group.UUID(), true)
}

// renumber imports a number of its own for each second object: one that another
// object has now and gives up, or one that was never in use.
func (s *service) renumber(random *rand.Rand) {
	s.T.Helper()
	var file strings.Builder
	rows, err := s.DB.SQL().QueryContext(s.T.Context(), "SELECT kind, number, id::text FROM id_registry WHERE retired_at IS NULL")
	if err != nil {
		s.T.Fatal(err)
	}
	defer rows.Close()
	held := map[string][]string{} // numbers by their kinds
	ids := map[string][]string{}
	for rows.Next() {
		var kind, number, id string
		if err := rows.Scan(&kind, &number, &id); err != nil {
			s.T.Fatal(err)
		}
		held[kind], ids[kind] = append(held[kind], number), append(ids[kind], id)
	}
	for kind, numbers := range held {
		highest := s.Number("SELECT max(number) FROM id_registry WHERE kind = $1", kind)
		random.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
		for i, number := range numbers {
			if random.IntN(3) == 0 {
				number = fmt.Sprint(highest + 1 + i)
			}
			fmt.Fprintf(&file, "%s,%s,%s\n", kind, number, ids[kind][i])
		}
	}
	report, err := idmap.Import(s.T.Context(), s.DB.SQL(), strings.NewReader(file.String()), false)
	if err != nil {
		s.T.Fatalf("%v: %v", err, report.Refused)
	}
}
