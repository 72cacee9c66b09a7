package idmap

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fixed makes the database that of a cell.
func fixed(t testing.TB, db *sql.DB, number, count int) {
	t.Helper()
	exec(t, db, `INSERT INTO cell (number, count) VALUES ($1, $2)`, number, count)
}

// numbersOf lists the numbers of a kind.
func numbersOf(t testing.TB, db *sql.DB, kind Kind) (numbers []int) {
	t.Helper()
	for _, text := range list(t, db, `SELECT number::text FROM id_registry WHERE kind = $1 ORDER BY number`, kind.String()) {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// TestCellsShareNoNumber: cells that allocate at a time give numbers of their own
// residues, none twice, and none that the first gave while it was alone.
func TestCellsShareNoNumber(t *testing.T) {
	t.Parallel()
	var cells [2]*sql.DB
	for number := range cells {
		cells[number], _ = registry(t)
	}
	create(t, cells[0], Client, 1, 2, 3)
	alone := len(numbersOf(t, cells[0], Client))
	var all sync.WaitGroup
	for number, db := range cells {
		fixed(t, db, number, len(cells))
		for worker := range 4 {
			all.Go(func() {
				for _, kind := range []Kind{Client, Report} {
					if _, err := db.Exec(fmt.Sprintf(`INSERT INTO %s (id, created_at) SELECT gen_random_uuid(), now()
						FROM generate_series(1, 20 + %d)`, tables[kind], worker)); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	for _, kind := range []Kind{Client, Report} {
		seen := map[int]bool{}
		for number, db := range cells {
			given := numbersOf(t, db, kind)
			if len(given) < 86 {
				t.Errorf("cell %d gave %d numbers", number, len(given))
			}
			for _, n := range given {
				before := kind == Client && n <= alone
				if seen[n] || !before && n%2 != number || number > 0 && n <= maxImported {
					t.Fatalf("cell %d gave %s %d", number, kind, n)
				}
				seen[n] = true
			}
		}
	}
}

// TestCellsImport: imported numbers are taken whatever their residue, and the cell goes
// on above them with its own.
func TestCellsImport(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		before        int // clients that are there before the cell is fixed
		number, count int
		imported      []int
		want          []int // the numbers of the clients after it, one more each time
	}{
		{0, 0, 4, []int{3, 5, 13, 2}, []int{4, 8, 12, 16, 20}},
		{2, 0, 3, []int{100, 50, 103}, []int{3, 102, 105, 108}},
		{3, 0, 3, nil, []int{6, 9}},
		{2, 1, 3, []int{100, 1 << 30}, []int{1<<30 + 3, 1<<30 + 6, 1<<30 + 9}},
		{0, 9, 10, []int{7}, []int{1<<30 + 5, 1<<30 + 15}},
	} {
		db, r := registry(t)
		for n := range test.before {
			create(t, db, Client, n+1)
		}
		fixed(t, db, test.number, test.count)
		next := 10
		for i, want := range test.want {
			create(t, db, Client, next)
			if got := number(t, r, Client, next); got != int64(want) {
				t.Errorf("%+v: client %d has number %d, not %d", test, i, got, want)
			}
			if i < len(test.imported) {
				file := fmt.Sprintf("client,%d,%s", test.imported[i], cli(next))
				if _, err := Import(t.Context(), r.db, strings.NewReader(file), false); err != nil {
					t.Errorf("%+v: import %d: %v", test, test.imported[i], err)
				}
				if got := number(t, r, Client, next); got != int64(test.imported[i]) {
					t.Errorf("%+v: the imported number is %d", test, got)
				}
			}
			next++
		}
	}
}
