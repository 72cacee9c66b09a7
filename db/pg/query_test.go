package pg_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"pgregory.net/rapid"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// TestPlaceholders: values arrive at their places, whether they are named by order
// or by number, more than once, or within a query that is a value itself.
func TestPlaceholders(t *testing.T) {
	d := open(t)
	inner := pg.SQL("?1::text || ?0::text", "c", "b")
	for want, q := range map[string]pg.Query{
		"a b":   pg.SQL("SELECT ?::text || ' ' || ?::text", "a", "b"),
		"b a b": pg.SQL("SELECT ?1::text || ' ' || ?0::text || ' ' || ?1::text", "a", "b"),
		"abcd":  pg.SQL("SELECT ?::text || ? || ?::text", "a", inner, "d"),
		"bcbc":  pg.SQL("SELECT ?0 || ?0", inner),
		"no ?":  pg.SQL("SELECT 'no ?'"),
		"a?$1'": pg.Prepared(pg.SQL("SELECT ?::text", "a?$1'")),
		"x 7 it": pg.From("(VALUES (1, 'x'), (2, 'y')) AS v (n, s)").
			ColumnExpr("?", pg.SQL("v.s || ' ' || ?::integer || ?", 7, pg.SQL("' it'"))).Apply(pg.Where("v.n = ?", 1)),
		"y x":    pg.SQL("SELECT string_agg(r.s, ' ') FROM (?) AS r", pg.Limit(pg.FromRows(pg.SQL("SELECT * FROM (VALUES ('x'), ('y'), ('a')) AS v (s)"), "w").ColumnExpr("s").OrderExpr("s DESC"), 2)),
		"a ? b":  pg.SQL(`SELECT ?::text || ' \? ' || ?::text`, "a", "b"),
		"b a b2": pg.SQL("SELECT ?second::text || ' ' || ?first::text || ' ' || ?second || ?n_2::integer", pg.Named{"first": "a", "second": "b", "n_2": 2}),
		"yes":    pg.SQL("SELECT 'yes' WHERE ARRAY[1] <@ ?all::int[] AND ?rest", pg.Named{"rest": pg.SQL("2 > ?", 1), "all": []int{1, 2}}),
		"b":      pg.Raw("SELECT $2::text || left($1::text, 0)", []any{"a", "b"}),
	} {
		if got, err := pg.One[string](t.Context(), d, "read", q); err != nil || got != want {
			t.Errorf("read %q, want %q; %v", got, want, err)
		}
	}
}

// TestContains: a key is taken literally.
func TestContains(t *testing.T) {
	d := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		alphabet := rapid.StringOfN(rapid.SampledFrom([]rune(`%_\aä`)), 0, 4, -1)
		a, b, key := alphabet.Draw(rt, "a"), alphabet.Draw(rt, "b"), alphabet.Draw(rt, "key")
		got, err := pg.All[int](t.Context(), d, "search", pg.SQL("SELECT 1 FROM (SELECT ?::text AS a, ?::text AS b) AS t WHERE ?",
			a, b, pg.Contains(key, "t.a", "t.b")))
		if err != nil {
			rt.Fatal(err)
		}
		if want := strings.Contains(a, key) || strings.Contains(b, key); (len(got) == 1) != want {
			rt.Fatalf("%q in %q or %q: %v, want %v", key, a, b, got, want)
		}
	})
}

type item struct {
	bun.BaseModel `bun:"table:items,alias:i"`

	ID  domain.ClientID `bun:"id,pk"`
	Key string
	N   *int
	Day domain.Date `bun:"day,nullzero"`
}

const items = `CREATE TABLE items (id uuid PRIMARY KEY, key text COLLATE "C", n integer, day date);
	CREATE INDEX items_by_key ON items (key, id)`

// TestInsert: rows go in by their columns and come out the same, NULL where a
// field is; and an Insert may stand before more.
func TestInsert(t *testing.T) {
	d := open(t)
	exec(t, d, items)
	n := 7
	rows := []item{{ID: domain.ClientID{15: 1}, Key: "a'?$1", N: &n, Day: domain.Date{}.AddDays(9)}, {ID: domain.ClientID{15: 2}}}
	for _, added := range []int{2, 0} {
		got, err := pg.Exec(t.Context(), d, "insert", pg.SQL("? ON CONFLICT DO NOTHING", pg.Insert(rows...)))
		if err != nil || got != added {
			t.Fatalf("%d added, want %d; %v", got, added, err)
		}
	}
	got, err := pg.All[item](t.Context(), d, "read", pg.Rows[item]().OrderExpr("i.id"))
	if err != nil || len(got) != 2 || got[0].Key != rows[0].Key || *got[0].N != n || got[0].Day != rows[0].Day || got[1].N != nil || !got[1].Day.IsZero() {
		t.Errorf("read %+v, %v", got, err)
	}
	if null, err := pg.One[bool](t.Context(), d, "read", pg.SQL("SELECT day IS NULL FROM items WHERE id = ?", rows[1].ID)); err != nil || !null {
		t.Errorf("a zero date is no NULL: %v", err)
	}
	if _, err := pg.Find[item](t.Context(), d, "item", pg.Rows[item]().Where("false")); !domain.IsCode(err, domain.NotFound) {
		t.Errorf("an item that is not there: %v", err)
	}
	if _, err := pg.One[item](t.Context(), d, "read", pg.SQL("SELECT i.* FROM items AS i WHERE false")); !errors.Is(err, pg.ErrNoRow) {
		t.Errorf("no row: %v", err)
	}
}

// TestKeyset: whatever rows there are, a walk in pages of any size reads each row
// once and in order, ties broken by id in the direction of the sort, and so does a
// jump by offset; the total is exact.
func TestKeyset(t *testing.T) {
	d := open(t)
	exec(t, d, items)
	rapid.Check(t, func(rt *rapid.T) {
		keys := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "B", "ä", "%"}), 0, 12).Draw(rt, "keys")
		rows := make([]item, len(keys))
		for i, key := range keys {
			rows[i] = item{ID: domain.ClientID{15: byte(i*7%13 + 1)}, Key: key}
		}
		exec(t, d, "TRUNCATE items")
		if len(rows) > 0 {
			if _, err := pg.Exec(t.Context(), d, "insert", pg.Insert(rows...)); err != nil {
				rt.Fatal(err)
			}
		}
		k := pg.Keyset[item]{
			Table: "items AS i", Key: "i.key", ID: "i.id", Cast: "text", Desc: rapid.Bool().Draw(rt, "desc"), OneIndex: rapid.Bool().Draw(rt, "one index"),
			Position: func(r *item) domain.Position { return domain.Position{Key: r.Key, ID: r.ID.UUID()} },
		}
		k.Where.Add("i.key <> ?", "%")
		rows = slices.DeleteFunc(rows, func(r item) bool { return r.Key == "%" })
		slices.SortFunc(rows, func(a, b item) int {
			order := cmp.Or(cmp.Compare(a.Key, b.Key), slices.Compare(a.ID[:], b.ID[:]))
			if k.Desc {
				order = -order
			}
			return order
		})

		w := domain.Window{Limit: rapid.IntRange(1, 5).Draw(rt, "limit"), Total: true, Skip: rapid.IntRange(0, 3).Draw(rt, "skip")}
		want := rows[min(w.Skip, len(rows)):]
		for more := true; more; {
			page, err := pg.CountedPage(context.Background(), d, k, w)
			if err != nil {
				rt.Fatal(err)
			}
			n := min(w.Limit, len(want))
			if fmt.Sprint(page.Rows) != fmt.Sprint(want[:n]) || page.More != (n < len(want)) || page.Total != len(rows) || (page.End == nil) != (n == 0) {
				rt.Fatalf("read %+v, want %v of %v", page, want[:n], rows)
			}
			want, more = want[n:], page.More
			w.Skip, w.After = 0, page.End
		}
	})
}

// TestAdvisoryLock: one holds a lock at a time, and it is free again after a
// failure.
func TestAdvisoryLock(t *testing.T) {
	d := open(t)
	failed := errors.New("failed")
	err := d.WithAdvisoryLock(t.Context(), "name", func(ctx context.Context) error {
		if got, err := d.TryAdvisoryLock(ctx, "name", func(context.Context) error { return nil }); got || err != nil {
			t.Errorf("locked twice: %t, %v", got, err)
		}
		if got, err := d.TryAdvisoryLock(ctx, "another", func(context.Context) error { return nil }); !got || err != nil {
			t.Errorf("another is not free: %t, %v", got, err)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Error(err)
	}
	got, err := d.TryAdvisoryLock(t.Context(), "name", func(context.Context) error { return failed })
	if !got || !errors.Is(err, failed) {
		t.Errorf("not free afterwards: %t, %v", got, err)
	}
}

// TestFaults: a placeholder without a value panics, and so does a named value without a placeholder, a value that would
// be written into the text, and a Raw statement within another.
func TestFaults(t *testing.T) {
	for name, q := range map[string]pg.Query{
		"has no value ?b":        pg.SQL("SELECT ?a, ?b", pg.Named{"a": 1}),
		"use its value ?c":       pg.SQL("SELECT ?a, ?b", pg.Named{"a": 1, "b": 2, "c": 3}),
		"more placeholders":      pg.SQL("SELECT ?, ?", 1),
		"more placeholders than": pg.SQL("SELECT ?0, ?1", 1),
		"values: SELECT ?0, ?12": pg.SQL("SELECT ?0, ?12", 1),
		"has no value ?name":     pg.SQL("SELECT ?0, ?name", 1),
		"the value Acme":         pg.From("clients AS c").Where("c.name = ?", "Acme"),
		"the value 2026-":        pg.From("clients AS c").ColumnExpr("?", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		"the value true":         pg.From("clients AS c").Where("?", true),
		"a Raw statement":        pg.SQL("SELECT (?)", pg.Raw("SELECT 1", nil)),
		"a Raw statement is":     pg.SQL("? LIMIT ?", pg.Raw("SELECT 1", nil), 1),
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, name) {
					t.Errorf("panicked with %q, want %q", got, name)
				}
			}()
			pg.Text(q)
		}()
	}
}

// TestBuilders: Bun writes numbers into the text without asking the dialect. So nobody passes values to its builders:
// the placeholders of their texts stand for queries, as in "?", "(?)" and "? AS name". Values go by SQL or Where.
func TestBuilders(t *testing.T) {
	builder := regexp.MustCompile(`\.(?:Where|WhereOr|ColumnExpr|TableExpr|Join|JoinOn|OrderExpr|GroupExpr|Having|For)\(\s*("[^"]*"|` + "`[^`]*`" + `),\s`)
	forQuery := regexp.MustCompile(`^.\?.$|\(\?\)|\? AS `)
	seen := 0
	eachSource(t, func(path, source string) {
		for _, call := range builder.FindAllStringSubmatch(strings.ReplaceAll(source, "pg.Where(", ""), -1) {
			seen++
			if strings.Contains(forQuery.ReplaceAllString(call[1], ""), "?") {
				t.Errorf("%s: pass the values of %s by pg.SQL or pg.Where", path, call[1])
			}
		}
	})
	if seen < 10 {
		t.Errorf("found %d calls of builders", seen)
	}
}

// eachSource calls yield with each file of Go in the module, without tests.
func eachSource(t *testing.T, yield func(path, source string)) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		yield(path, string(source))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNamed verifies that statements with three values or more name them, except where several statements take the same
// values, of which each uses some; and that no number of rows is written into a text.
func TestNamed(t *testing.T) {
	shared := []string{"db/clock_behind.go", "db/periodic.go"}
	calls := 0
	eachSource(t, func(path, source string) {
		if slices.ContainsFunc(shared, func(name string) bool { return strings.HasSuffix(path, name) }) {
			return
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			var name string
			switch f := call.Fun.(type) {
			case *ast.SelectorExpr:
				name = f.Sel.Name
			case *ast.Ident:
				name = f.Name
			}
			switch name {
			case "Limit", "Offset":
				if len(call.Args) == 1 {
					t.Errorf("%s: bind the number, by pg.Limit or pg.SQL", files.Position(call.Pos()))
				}
			case "SQL", "Where", "Add", "PoliciesChanged":
				calls++
				if len(call.Args) > 3 && isText(call.Args[0]) {
					t.Errorf("%s: name the values by pg.Named", files.Position(call.Pos()))
				}
			}
			return true
		})
	})
	if calls < 100 {
		t.Errorf("found %d statements", calls)
	}
}

// isText reports whether an argument is a text that is written there.
func isText(argument ast.Expr) bool {
	switch a := argument.(type) {
	case *ast.BasicLit:
		return a.Kind == token.STRING
	case *ast.BinaryExpr:
		return isText(a.X) || isText(a.Y)
	}
	return false
}
