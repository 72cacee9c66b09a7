package database

import (
	"context"
	"fmt"

	"partnerapi/db"
	"partnerapi/db/cells"
	"partnerapi/domain"
)

// CellFlags name the cell, one of several installations among which partners are divided.
type CellFlags struct {
	Cell      string `default:"00" help:"Code of this installation (cell) if partners are divided among several cells: two characters from 0-9, A-Z and a-z. The first cell has the code 00. The first start with this flag stores the code permanently in the database."`
	CellCount int    `name:"cell-count" default:"1" help:"Maximum number of cells, now and in the future. The number is stored together with --cell."`
}

// ParseCell returns the cell that the flags name.
func (f CellFlags) ParseCell() (domain.Cell, error) {
	c, err := domain.ParseCell(f.Cell, f.CellCount)
	if err != nil {
		err = fmt.Errorf("--cell, --cell-count: %w", err)
	}
	return c, err
}

// FixCell makes the database belong to the cell of the flags. It returns an error if it belongs to another.
func (f CellFlags) FixCell(ctx context.Context, d *db.DB) error {
	wanted, err := f.ParseCell()
	if err != nil {
		return err
	}
	actual, err := cells.Fix(ctx, d, wanted)
	if err != nil {
		return err
	}
	return CheckCell(actual, wanted)
}

// CheckCell returns an error for operators if the database belongs to another cell than wanted.
func CheckCell(actual, wanted domain.Cell) error {
	switch {
	case actual == wanted:
		return nil
	case actual.Count > 1:
		return fmt.Errorf("this database is permanently cell %s; start with --cell %s --cell-count %d",
			actual, actual.Code(), actual.Count)
	}
	// Without partners, it would have become the wanted cell.
	return fmt.Errorf("this database has partners whose keys lead to cell 00, so it cannot be cell %s", wanted)
}
