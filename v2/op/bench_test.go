package op_test

import (
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
		Since *op.Time `query:"since"`
	}
	Body struct {
		Name     op.Optional[string]  `json:"name,omitzero" validate:"omitnil,filled,max=200"`
		Industry op.Optional[*string] `json:"industry,omitzero" validate:"omitnil,max=500"`
		Users    []domain.UserID      `json:"users"`
	}
}

// shown is a row as lists show it.
type shown struct {
	ID        domain.ClientID `json:"id"`
	Name      string          `json:"name"`
	Industry  *string         `json:"industry"`
	CreatedAt op.Time         `json:"created_at"`
	UpdatedAt op.Time         `json:"updated_at"`
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

// pageOf makes a page of so many rows, with a cursor that goes on.
func pageOf(l op.List, rows int) *op.Page[shown] {
	industry := "Legal"
	slice := domain.Slice[int]{Rows: make([]int, rows), More: true, End: &domain.Position{Key: "northern analytics", ID: domain.ClientID{15: 1}.UUID()}}
	at := op.At(time.Date(2026, 6, 15, 12, 0, 0, 123456000, time.UTC))
	return op.PageOf(l, slice, func(int) shown {
		return shown{ID: domain.ClientID{15: 1}, Name: "Northern Analytics", Industry: &industry, CreatedAt: at, UpdatedAt: at}
	})
}

func BenchmarkEncodePage(b *testing.B) {
	page := pageOf(op.NewList(domain.CursorSealer{Secret: []byte("secret")}, "clients.list"), 500)
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
	l := op.NewList(domain.CursorSealer{Secret: []byte("secret")}, "clients.list", domain.ClientFilter{Sort: "name"})
	for b.Loop() {
		page := pageOf(l, 1)
		if w, err := l.Window(op.Paging{Limit: 1, Cursor: page.End}); err != nil || w.After == nil {
			b.Fatal(err)
		}
	}
}
