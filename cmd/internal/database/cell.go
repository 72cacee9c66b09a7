package database

import (
	"context"
	"fmt"

	"partnerapi/db"
	"partnerapi/domain"
)

// CellFlags say which of several installations this one is, among which partners are
// divided.
type CellFlags struct {
	Cell      string `default:"00" help:"Which of several installations this is, among which partners are divided: two of 0-9, A-Z, a-z, counted from 00. Fixed in the database at the first start that names one."`
	CellCount int    `name:"cell-count" default:"1" help:"How many such installations there may ever be. Fixed with --cell."`
}

// Wanted is the cell that the flags name.
func (f CellFlags) Wanted() (domain.Cell, error) {
	c, err := domain.ParseCell(f.Cell, f.CellCount)
	if err != nil {
		err = fmt.Errorf("--cell, --cell-count: %w", err)
	}
	return c, err
}

// FixCell makes the database that of the cell, where it is of none yet; an error where it
// is another's.
func (f CellFlags) FixCell(ctx context.Context, d *db.DB) error {
	wanted, err := f.Wanted()
	if err != nil {
		return err
	}
	is, err := d.FixCell(ctx, wanted)
	if err != nil {
		return err
	}
	return CheckCell(is, wanted)
}

// CheckCell reports an error, in words for an operator, where the database is of another cell
// than is wanted.
func CheckCell(is, wanted domain.Cell) error {
	switch {
	case is == wanted:
		return nil
	case is.Count > 1:
		return fmt.Errorf("this database is cell %s for good: give --cell %s --cell-count %d", is, is.Code(), is.Count)
	}
	return fmt.Errorf("this database has partners, whose keys lead to cell 00: it cannot be cell %s", wanted)
}
