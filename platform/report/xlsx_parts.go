package report

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"

	"github.com/xuri/excelize/v2"
)

// setUsed records the range of cells that a sheet uses: its first columns and rows.
func (b *workbook) setUsed(sheet string, columns, rows int) {
	b.used[sheet] = "A1:" + b.cellName(columns, rows)
}

// newArchive returns the ZIP writer of the workbook. The library writes the dimension of a sheet, which is its range of
// cells, before the rows, and always as A1. The archive replaces A1 by the range in use, on which some programs rely.
func (b *workbook) newArchive(w *zip.Writer) excelize.ZipWriter {
	a := &archive{Writer: w, used: map[string]string{}}
	for id, name := range b.GetSheetMap() {
		a.used[fmt.Sprintf("xl/worksheets/sheet%d.xml", id)] = b.used[name]
	}
	return a
}

// archive writes the ZIP archive of a workbook.
type archive struct {
	*zip.Writer
	used map[string]string // the ranges of cells in use, by the sheet's file
}

// Create begins a file of the archive. The writer of a sheet's file replaces the sheet's dimension.
func (a *archive) Create(name string) (io.Writer, error) {
	w, err := a.Writer.Create(name)
	if used := a.used[name]; used != "" && err == nil {
		return &sheetPart{Writer: w, used: used}, nil
	}
	return w, err
}

// sheetPart writes the file of a sheet, and replaces its dimension.
type sheetPart struct {
	io.Writer
	used string // the dimension; empty after it was written
}

var emptyDimension = []byte(`<dimension ref="A1"></dimension>`)

// Write writes a piece of the file. The first piece must have the dimension, which it replaces.
func (s *sheetPart) Write(text []byte) (int, error) {
	if s.used == "" { // replaced already
		return s.Writer.Write(text)
	}
	before, after, found := bytes.Cut(text, emptyDimension)
	if !found {
		return 0, fmt.Errorf("a sheet begins without a dimension: %.200q", text)
	}
	if _, err := fmt.Fprintf(s.Writer, `%s<dimension ref="%s"/>`, before, s.used); err != nil {
		return 0, err
	}
	s.used = ""
	if _, err := s.Writer.Write(after); err != nil {
		return 0, err
	}
	return len(text), nil
}
