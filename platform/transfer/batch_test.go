package transfer

import (
	"context"
	"io"
	"reflect"
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
	k := kindCalled(object)
	for _, f := range k.fields {
		if f.name == name {
			of := k.Type().Field(f.index)
			marks = strings.FieldsFunc(of.Tag.Get("rule"), func(r rune) bool { return r == ',' })
			if value, _ := of.Type.FieldByName("Value"); value.Type.Kind() == reflect.Pointer {
				marks = append(marks, "null")
			}
		}
	}
	return marks
}
