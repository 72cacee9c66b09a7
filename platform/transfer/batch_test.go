package transfer

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"partnerapi/db"
	"partnerapi/domain/rule"
)

// IngestImpatiently is Ingest with something else than the clock to say that a
// batch has waited long enough for more lines.
var IngestImpatiently = ingestBatches

// ImportIn is Import in batches of at most the given lines.
func ImportIn(ctx context.Context, d *db.DB, r io.Reader, w Watcher, lines int) (Report, error) {
	return importAs(ctx, d, Lines(r), &run{watcher: w, batchLines: lines})
}

// Fields are the fields of each kind of objects, in their order, each with how a guide marks it.
func Fields() map[string][]string {
	all := map[string][]string{}
	for _, k := range kinds { // users twice
		all[k.Object()] = nil
		for of := range k.Type().Fields() {
			if of.Name == "ID" {
				continue
			}
			marks := strings.FieldsFunc(of.Tag.Get("rule"), func(r rune) bool { return r == ',' })
			if value, _ := of.Type.FieldByName("Value"); value.Type.Kind() == reflect.Pointer {
				marks = append(marks, "null")
			}
			slices.Sort(marks)
			all[k.Object()] = append(all[k.Object()], fmt.Sprint(rule.WireName(of), " ", marks))
		}
	}
	return all
}
