package transfer

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"partnerapi/db"
)

// IngestImpatiently is Ingest with something else than the clock to say that a
// batch has waited long enough for more lines.
var IngestImpatiently = ingestBatches

// ImportIn is Import in batches of at most the given lines.
func ImportIn(ctx context.Context, d *db.DB, r io.Reader, w Watcher, lines int) (Report, error) {
	return importAs(ctx, d, r, &run{watcher: w, batchLines: lines})
}

// Fields are the fields of each kind of objects, in their order, each with how a guide marks it.
func Fields() map[string][]string {
	all := map[string][]string{}
	for _, k := range kinds { // users twice
		all[k.object] = nil
		for _, f := range k.fields {
			of := k.Type().Field(f.index)
			marks := strings.FieldsFunc(of.Tag.Get("rule"), func(r rune) bool { return r == ',' })
			if value, _ := of.Type.FieldByName("Value"); value.Type.Kind() == reflect.Pointer {
				marks = append(marks, "null")
			}
			slices.Sort(marks)
			all[k.object] = append(all[k.object], fmt.Sprint(f.name, " ", marks))
		}
	}
	return all
}
