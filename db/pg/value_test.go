package pg_test

import (
	"testing"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// TestValues: ids and dates are what they stand for, whatever the type of the
// parameter is, and NULL where they are none.
func TestValues(t *testing.T) {
	d := open(t)
	id, day := domain.ClientID{15: 7}, domain.DateOf(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
	var none *domain.ClientID
	for query, args := range map[string][]any{
		"SELECT ?::uuid = '00000000-0000-0000-0000-000000000007'":              {id},
		"SELECT ?0::uuid = ?0 AND ?0::uuid = ?1":                               {id, &id},
		"SELECT ?::text = '00000000-0000-0000-0000-000000000007'":              {id},
		"SELECT ?::text::uuid = '00000000-0000-0000-0000-000000000007'":        {id},
		"SELECT ?::uuid IS NULL":                                               {none},
		"SELECT '00000000-0000-0000-0000-000000000007'::uuid = ANY(?::uuid[])": {pg.IDs([]domain.ClientID{id})},
		"SELECT ?::date = '2026-06-15'":                                        {day},
		"SELECT ?::text = '2026-06-15'":                                        {day},
		"SELECT ?::timestamptz = '2026-06-15T00:00:00Z'":                       {day},
		"SELECT ?::date IS NULL":                                               {domain.Date{}},
		"SELECT ?::date IS NULL AND true":                                      {(*domain.Date)(nil)},
		"SELECT ?::date = '2026-06-15' AND true":                               {&day},
	} {
		for _, q := range []pg.Query{pg.SQL(query, args...), pg.Prepared(pg.Raw(pg.Text(pg.SQL(query, args...)), args))} {
			if ok, err := pg.One[bool](t.Context(), d, "compare", q); err != nil || !ok {
				t.Errorf("%s with %v: %t, %v", query, args, ok, err)
			}
		}
	}
}
