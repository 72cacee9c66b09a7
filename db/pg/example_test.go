package pg_test

import (
	"fmt"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
)

// client is a row: Bun's tags say its columns.
type client struct {
	bun.BaseModel `bun:"table:clients,alias:c"`

	ID   [16]byte `bun:"id,type:uuid"`
	Name string   `bun:"name"`
}

// A statement is put together from its clauses; values are sent apart from the text.
func ExampleFrom() {
	fmt.Println(pg.Text(pg.Limit(pg.Rows[client]().Apply(pg.Where("c.name = ?", "Acme")).OrderExpr("c.id"), 10)))
	// Output: SELECT c.id, c.name FROM clients AS c WHERE (c.name = $1) ORDER BY c.id LIMIT $2
}

// A value is named by its place where it stands more than once.
func ExampleSQL() {
	fmt.Println(pg.Text(pg.SQL("SELECT ?::text", "a")))
	fmt.Println(pg.Text(pg.SQL("UPDATE clients SET name = ?1 WHERE id = ?0", 7, "Acme")))
	// Output:
	// SELECT $1::text
	// UPDATE clients SET name = $1 WHERE id = $2
}

// The columns of an inserted row are those of its model.
func ExampleInsert() {
	fmt.Println(pg.Text(pg.SQL("? ON CONFLICT DO NOTHING", pg.Insert(client{Name: "Acme"}))))
	// Output: INSERT INTO clients (id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING
}
