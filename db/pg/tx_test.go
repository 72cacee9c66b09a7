package pg_test

import (
	"context"
	"database/sql/driver"
	"testing"

	"partnerapi/db/pg"
)

// bomb is a value that cannot be sent.
type bomb struct{}

func (bomb) Value() (driver.Value, error) { panic("bomb") }

// TestPanicReleases: a panic within a statement or a transaction gives its connection
// back.
func TestPanicReleases(t *testing.T) {
	d := open(t, pg.WithConns(2))
	for name, fails := range map[string]func(ctx context.Context) error{
		"statement": func(ctx context.Context) error {
			_, err := pg.Exec(ctx, d, "send a bomb", pg.SQL("SELECT ?::text", bomb{}))
			return err
		},
		"transaction": func(ctx context.Context) error {
			return d.Tx(ctx, func(ctx context.Context) error {
				_, err := pg.Exec(ctx, d, "send a bomb", pg.SQL("SELECT ?::text", bomb{}))
				return err
			})
		},
	} {
		for range 3 {
			func() {
				defer func() {
					if p := recover(); p != "bomb" {
						t.Fatalf("%s: the panic is %v", name, p)
					}
				}()
				err := fails(t.Context())
				t.Errorf("%s: no panic, %v", name, err)
			}()
			if held := d.Pool().Stat().AcquiredConns(); held != 0 || d.Stats().InUse != 0 {
				t.Errorf("%s: %d connections are held", name, held)
			}
		}
	}
	exec(t, d, "SELECT 1")
}
