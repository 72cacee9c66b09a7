package idmap

import (
	"context"
	"encoding/csv"
	"io"
	"strconv"

	"partnerapi/db/pg"
)

// progressEvery is the number of lines between two calls of progress.
const progressEvery = 1000

// Export writes the number of every object in the format of Import: a header, then lines of kind,number,id, by kind and
// number, with the id in the form of v2. It skips tombstones, because an import would refuse them. It returns the
// number of lines without the header. Every progressEvery lines and at the end it calls progress, unless nil, with the
// number of lines written so far and the number of all lines.
//
// It reads everything in one snapshot, which stays open until the last line is written.
func Export(ctx context.Context, d *pg.DB, to io.Writer, progress func(done, total int)) (lines int, err error) {
	const action = "export numbers"
	if progress == nil {
		progress = func(int, int) {}
	}
	err = d.Snapshot(ctx, func(ctx context.Context) error {
		total, err := pg.One[int](ctx, d, action, pg.SQL("SELECT count(*) FROM id_registry WHERE retired_at IS NULL"))
		if err != nil {
			return err
		}
		out := csv.NewWriter(to)
		if err := out.Write([]string{"kind", "number", "id"}); err != nil {
			return err
		}
		rows := pg.Each[struct {
			Kind   string
			Number int64
			ID     anyID
		}](ctx, d, action, pg.SQL("SELECT kind, number, id FROM id_registry WHERE retired_at IS NULL ORDER BY kind, number"))
		for r, err := range rows {
			if err != nil {
				return err
			}
			kind, err := ParseKind(r.Kind)
			if err != nil {
				return err
			}
			if err := out.Write([]string{r.Kind, strconv.FormatInt(r.Number, 10), kindInfos[kind].show(UUID(r.ID))}); err != nil {
				return err
			}
			if lines++; lines%progressEvery == 0 {
				progress(lines, total)
			}
		}
		progress(lines, total)
		out.Flush()
		return out.Error()
	})
	return lines, err
}
