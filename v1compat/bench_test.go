package v1compat

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/api"
	"partnerapi/v2/op/ginop"
)

var benchedAt = domain.At(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))

// BenchmarkUsers translates and encodes the largest page that a list of v2
// gives: what v1 adds to its work, beside the look-up of numbers.
func BenchmarkUsers(b *testing.B) {
	department := "Finance"
	rows := make([]api.User, 500)
	for i := range rows {
		rows[i].UserCore = api.UserCore{
			ID: domain.UserID{15: byte(i)}, Email: "someone@example.com", FirstName: "Some", LastName: "One", Department: &department,
			Status: domain.Active, CreatedAt: benchedAt, UpdatedAt: benchedAt,
		}
	}
	benchPage(b, rows, toUser)
}

// BenchmarkClients is BenchmarkUsers for clients, which have numbers.
func BenchmarkClients(b *testing.B) {
	rows := make([]api.Client, 500)
	for i := range rows {
		rows[i] = api.Client{ID: domain.ClientID{15: byte(i)}, Name: "Northern Analytics", CreatedAt: benchedAt}
	}
	benchPage(b, rows, func(c api.Client) Client {
		out := toClient(c)
		out.ID = idmap.Ref[domain.ClientKind]{ID: c.ID, Number: 1}
		return out
	})
}

func benchPage[Row, Item any](b *testing.B, rows []Row, item func(Row) Item) {
	b.ReportAllocs()
	for b.Loop() {
		page := Paging[Item]{Items: make([]Item, len(rows)), Limit: len(rows)}
		for i, row := range rows {
			page.Items[i] = item(row)
		}
		body, err := ginop.Encode(page)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}

// BenchmarkExchange exchanges 1,000 ids of users, clients and collections among
// 10,000 of each, over HTTP, without a cache: half of them ids of v1 and half of
// v2 where there are two.
func BenchmarkExchange(b *testing.B) {
	s := start(b, setup{})
	tenant := s.Tenant("Partner")
	client := s.Client(tenant, "Client").ID
	s.Exec(`INSERT INTO clients (id, partner_id, name, name_key, summarized_at, created_at, updated_at)
		SELECT ('01000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, $1, 'c' || n, 'c' || n, now(), now(), now() FROM generate_series(1, 10000) n`, tenant.ID)
	s.Exec(`INSERT INTO collections (client_id, id, name, name_key, created_by, created_at, updated_at)
		SELECT $1, ('01000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'c' || n, 'c' || n, 'api', now(), now() FROM generate_series(1, 10000) n`, client)
	s.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
		SELECT $1, ('01000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, n || '@example.com', 'A', 'B', 'a b', 'active', 'standard', 'en', 'api', 750, now(), now()
		FROM generate_series(1, 10000) n`, client)
	s.CountClients()
	for _, kind := range []string{"client", "user", "collection"} {
		var ids []string
		for n := range 1000 {
			id, err := domain.ParseUUID[domain.UserKind](fmt.Sprintf("01000000-0000-7000-8000-%012d", n*10+1))
			if err != nil {
				b.Fatal(err)
			}
			old, newer := s.tokens(kind, idmap.UUID(id))
			ids = append(ids, []string{old, newer}[n%2])
		}
		body := `{"kind":"` + kind + `","ids":[` + strings.Join(ids, ",") + `]}`
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				req := httptest.NewRequestWithContext(b.Context(), "POST", "/v1/ids/exchange", strings.NewReader(body))
				req.Header.Set("X-API-Key", tenant.Key)
				recorder := httptest.NewRecorder()
				s.Engine.ServeHTTP(recorder, req)
				if recorder.Code != 200 || strings.Count(recorder.Body.String(), `"v1"`) != 1000 {
					b.Fatal(recorder.Code, recorder.Body.String())
				}
			}
		})
	}
}
