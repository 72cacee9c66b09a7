package pg_test

import (
	"context"
	"errors"
	"testing"

	"partnerapi/db/pg"
)

// TestSnapshot: what is committed after its first statement is not seen, it
// changes nothing, and it is no part of another transaction.
func TestSnapshot(t *testing.T) {
	d := open(t)
	exec(t, d, "CREATE TABLE n (n integer)")
	err := d.Snapshot(t.Context(), func(ctx context.Context) error {
		for range 2 {
			n, err := pg.One[int](ctx, d, "count", pg.SQL("SELECT count(*) FROM n"))
			if n != 0 || err != nil {
				t.Errorf("sees %d rows; %v", n, err)
			}
			exec(t, d, "INSERT INTO n VALUES (1)")
		}
		if !d.InSnapshot(ctx) || d.InSnapshot(t.Context()) {
			t.Error("InSnapshot is wrong")
		}
		if err := d.Snapshot(ctx, nil); err == nil {
			t.Error("a snapshot within a transaction is begun")
		}
		_, err := pg.Exec(ctx, d, "insert", pg.SQL("INSERT INTO n VALUES (1)"))
		return err
	})
	if err == nil {
		t.Error("a snapshot may insert")
	}
	if n := exec(t, d, "DELETE FROM n"); n != 2 {
		t.Errorf("%d rows", n)
	}
}

// TestEach: all rows come in their order, batch after batch, again at each use and
// with others between them; one may stop early, and an error comes last.
func TestEach(t *testing.T) {
	d := open(t)
	const all = 2*pg.EachBatch + 7
	q := pg.SQL("SELECT n FROM generate_series(1, ?::integer) AS n WHERE 10 / (n - ?::integer) IS NOT NULL", all, all+1)
	err := d.Snapshot(t.Context(), func(ctx context.Context) error {
		numbers := pg.Each[int](ctx, d, "read numbers", q)
		for range 2 {
			want := 0
			for n, err := range numbers {
				if want++; n != want || err != nil {
					t.Fatalf("read %d, want %d; %v", n, want, err)
				}
				if n%1500 == 0 { // another cursor meanwhile, which is left early
					for first, err := range numbers {
						if first != 1 || err != nil {
							t.Fatalf("read %d; %v", first, err)
						}
						break
					}
				}
			}
			if want != all {
				t.Errorf("%d rows", want)
			}
		}
		for _, err := range pg.Each[int](ctx, d, "read none", pg.SQL("SELECT 1 WHERE false")) {
			t.Errorf("there is a row; %v", err)
		}

		fails, seen := error(nil), 0
		failing := pg.SQL("SELECT 1 / (n - ?::integer) FROM generate_series(1, 9999) AS n", pg.EachBatch+5)
		for _, err := range pg.Each[int](ctx, d, "fail", failing) {
			if fails = err; err == nil {
				seen++
			}
		}
		if fails == nil || seen != pg.EachBatch {
			t.Errorf("%d rows before the error %v", seen, fails)
		}
		return fails
	})
	if err == nil {
		t.Error("no error")
	}

	for _, err := range pg.Each[int](t.Context(), d, "read", q) {
		if err == nil || errors.Is(err, pg.ErrNoRow) {
			t.Errorf("outside of a transaction: %v", err)
		}
	}
}
