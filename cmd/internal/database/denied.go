package database

import (
	"cmp"
	"fmt"

	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/db/pg"
)

// ExplainDenied returns an error for operators if err is that of a statement for which the role of d lacks a right: with
// the role, the object, and what to run. It returns other errors unchanged.
func ExplainDenied(d *db.DB, err error) error {
	if !pg.Denied(err) {
		return err
	}
	fault, remedy := doctor.Denial(err, d.Pool().Config().ConnConfig.User)
	return fmt.Errorf("%s; %s: %w", fault, cmp.Or(remedy, "partnerapi doctor prints the GRANT statements for all tables and sequences"), err)
}
