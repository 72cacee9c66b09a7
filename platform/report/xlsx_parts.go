package report

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"

	"github.com/xuri/excelize/v2"
)

// uses records that a sheet uses its first columns and rows.
func (b *workbook) uses(sheet string, columns, rows int) {
	b.used[sheet] = "A1:" + b.cellName(columns, rows)
}

// parts returns the writer of the files in a workbook's file. The library writes the dimension of a sheet before its
// rows, as that of one cell: the writer replaces it by the range in use, for programs that rely on it.
func (b *workbook) parts(w *zip.Writer) excelize.ZipWriter {
	p := &parts{Writer: w, used: map[string]string{}}
	for id, name := range b.GetSheetMap() {
		p.used[fmt.Sprintf("xl/worksheets/sheet%d.xml", id)] = b.used[name]
	}
	return p
}

// parts writes the files in a workbook's file.
type parts struct {
	*zip.Writer
	used map[string]string // by the sheet's file
}

// Create begins a file; the writer of a sheet replaces the dimension.
func (p *parts) Create(name string) (io.Writer, error) {
	w, err := p.Writer.Create(name)
	if used := p.used[name]; used != "" && err == nil {
		return &sheetPart{Writer: w, used: used}, nil
	}
	return w, err
}

// sheetPart writes the file of a sheet, and replaces its dimension.
type sheetPart struct {
	io.Writer
	used string // empty after it was written
}

var noDimension = []byte(`<dimension ref="A1"></dimension>`)

// Write writes a piece of the file. It replaces the dimension in the first piece. Without one it returns an error.
func (s *sheetPart) Write(text []byte) (int, error) {
	if s.used == "" {
		return s.Writer.Write(text)
	}
	before, after, found := bytes.Cut(text, noDimension)
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
