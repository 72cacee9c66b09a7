package transfer

import (
	"context"
	"io"

	"partnerapi/db"
)

// IngestImpatiently is Ingest with something else than the clock to say that a
// batch has waited long enough for more lines.
var IngestImpatiently = ingestBatches

// ImportIn is Import in batches of at most the given lines.
func ImportIn(ctx context.Context, d *db.DB, r io.Reader, w Watcher, lines int) (Report, error) {
	return importAs(ctx, d, r, &run{watcher: w, batchLines: lines})
}

// Fields are the fields of each kind of objects, in their order.
func Fields() map[string][]string {
	all := map[string][]string{}
	for _, k := range kinds {
		var names []string
		for _, f := range k.fields {
			names = append(names, f.name)
		}
		all[k.object] = names
	}
	return all
}

// Marks are how a guide marks a field.
func Marks(object, name string) (marks []string) {
	for _, k := range kinds {
		if f := k.byName[name]; k.object == object && f != nil {
			for mark, is := range map[string]bool{"new": f.needed, "fixed": f.fixed, "null": f.null} {
				if is {
					marks = append(marks, mark)
				}
			}
			return marks
		}
	}
	return nil
}
