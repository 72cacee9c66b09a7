package op_test

import (
	"context"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// benched is an input with all parts, as a write on one object has them.
type benched struct {
	Path struct {
		ID domain.ClientID `path:"client_id"`
	}
	Query struct {
		op.Paging
		Since *domain.Time `query:"since"`
	}
	Body struct {
		Name     domain.Optional[string]  `json:"name,omitzero" validate:"omitnil,filled,max=200"`
		Industry domain.Optional[*string] `json:"industry,omitzero" validate:"omitnil,max=500"`
		Users    []domain.UserID          `json:"users"`
	}
}

// shown is a row as lists show it.
type shown struct {
	ID        domain.ClientID `json:"id"`
	Name      string          `json:"name"`
	Industry  *string         `json:"industry"`
	CreatedAt domain.Time     `json:"created_at"`
	UpdatedAt domain.Time     `json:"updated_at"`
}

func BenchmarkBind(b *testing.B) {
	id := domain.ClientID{15: 1}.String()
	user := domain.UserID{15: 2}.String()
	query := url.Values{"limit": {"50"}, "since": {"2026-01-31T08:00:00Z"}}
	body := []byte(`{"name": "Northern Analytics", "industry": null, "users": ["` + user + `", "` + user + `"]}`)
	input := op.Describe(reflect.TypeFor[benched]())
	for b.Loop() {
		in := input.New()
		if err := input.Bind(in, op.Request{Path: func(string) string { return id }, Query: query, Body: body}); err != nil {
			b.Fatal(err)
		}
	}
}

// aBenchedList is the operation of a list that has the given number of rows on a page and goes
// on, and its input.
func aBenchedList(rows int) (func(*testing.B) *op.Page[shown], *benched) {
	industry := "Legal"
	at := domain.At(time.Date(2026, 6, 15, 12, 0, 0, 123456000, time.UTC))
	set := &op.Set{Cursors: domain.CursorSealer{Secret: []byte("secret")}}
	list := op.DeclareList[benched, shown](op.Meta{
		ID: "clients.list", Method: "GET", Path: "/:client_id", Scope: domain.Read, Since: op.V2_0, Status: 200, Summary: "s",
	})
	op.BindList(set, list, func(context.Context, *benched, domain.Window) (domain.Slice[int], error) {
		end := &domain.Position{Key: "northern analytics", ID: domain.ClientID{15: 1}.UUID()}
		return domain.Slice[int]{Rows: make([]int, rows), More: true, End: end}, nil
	}, func(int) shown {
		return shown{
			ID: domain.ClientID{15: 1}, Name: "Northern Analytics", Industry: &industry, CreatedAt: at, UpdatedAt: at,
		}
	})

	ctx := domain.WithCaller(context.Background(), &domain.Caller{Scopes: []domain.Scope{domain.Read}})
	in := &benched{}
	in.Query.Limit = 1
	return func(b *testing.B) *op.Page[shown] {
		page, err := op.Call(ctx, set, list, in)
		if err != nil {
			b.Fatal(err)
		}
		return page
	}, in
}

func BenchmarkEncodePage(b *testing.B) {
	read, _ := aBenchedList(500)
	page := read(b)
	b.ReportAllocs()
	for b.Loop() {
		body, err := json.Marshal(page)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}

func BenchmarkCursor(b *testing.B) {
	read, in := aBenchedList(1)
	for b.Loop() {
		in.Query.Cursor = read(b).End
	}
}
