package v2test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"partnerapi/domain"
	"partnerapi/platform/transfer"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// Move exports the objects of a partner, or of all if it is zero, and imports them into the empty database of another
// service, as the guide to moving says: catalogues, objects, signals. The keys go along, so that tests read with them.
func Move(from, to *Harness, partner domain.PartnerID) {
	from.T.Helper()
	ctx := from.T.Context()
	to.Clock.Set(from.Clock.Now())
	to.Exec("INSERT INTO breaches SELECT * FROM json_populate_recordset(NULL::breaches, $1::json)",
		from.Text("SELECT coalesce(json_agg(b), '[]')::text FROM breaches AS b"))
	from.Must(to.DB.LoadTemplates(ctx))
	var objects, signals bytes.Buffer
	from.Must(transfer.Export(ctx, from.DB, partner, transfer.Output{Objects: &objects, Signals: &signals},
		func(string, int, bool) {}))
	watcher := transfer.Watcher{Refused: func(line int, reason string) { from.T.Errorf("line %d: %s", line, reason) }}
	_, err := transfer.Import(ctx, to.DB, transfer.Lines(&objects), watcher)
	from.Must(err)
	_, err = transfer.Ingest(ctx, to.DB, &signals, watcher)
	from.Must(err)
	to.Exec(`INSERT INTO api_keys SELECT k.* FROM json_populate_recordset(NULL::api_keys, $1::json) AS k
		WHERE k.partner_id IN (SELECT id FROM partners)`, from.Text("SELECT json_agg(k)::text FROM api_keys AS k"))
}

// Reads returns what the service shows to a key: the response of every operation that reads, for every object, without
// the operations named in except. The keys are the operation and the path.
func (h *Harness) Reads(key string, except map[string]string) map[string]any {
	h.T.Helper()
	r := reads{h: h, key: key, found: map[string]any{}, ids: map[string][]map[string]any{}}
	declared := map[string]op.Declaration{}
	for _, o := range api.Operations {
		declared[o.Meta().ID] = o
	}
	for _, o := range api.Operations {
		if m := o.Meta(); m.Method == http.MethodGet && except[m.ID] == "" {
			r.read(o, declared)
		}
	}
	return r.found
}

// reads collects the responses of a service. ids holds the items of lists by their paths.
type reads struct {
	h     *Harness
	key   string
	found map[string]any
	ids   map[string][]map[string]any
}

// sources are the lists whose items have the id of a path parameter, and the member with the id.
var sources = map[string][2]string{
	"client_id": {"clients.list", "id"}, "user_id": {"users.list", "id"}, "collection_id": {"collections.list", "id"},
	"policy_id": {"policies.list", "id"}, "assignment_id": {"clients.frameworks", "id"}, "report_id": {"reports.list", "id"},
	"webhook_id": {"webhooks.list", "id"},
}

// read reads an operation for all objects that its path can name.
func (r *reads) read(o op.Declaration, declared map[string]op.Declaration) {
	r.h.T.Helper()
	m := o.Meta()
	for _, path := range r.paths(m.Path, declared) {
		if isList(o) {
			items := r.list(path)
			list := make([]any, len(items))
			for i, item := range items {
				list[i] = item
			}
			r.found[m.ID+" "+path] = list
			continue
		}
		got := r.h.Get("/v2"+path, r.key)
		r.found[m.ID+" "+path] = map[string]any{"status": got.Status, "body": got.JSON()}
	}
}

// isList reports whether an operation is a list.
func isList(o op.Declaration) bool {
	return slices.ContainsFunc(o.Input().Query, func(p op.Param) bool { return p.Name == "cursor" })
}

// list returns the items of a list; one item with the error of a list that the key may not read.
func (r *reads) list(path string) []map[string]any {
	r.h.T.Helper()
	if items, ok := r.ids[path]; ok {
		return items
	}
	first := r.h.Get("/v2"+path+"?limit=1", r.key)
	if first.Status != http.StatusOK {
		return []map[string]any{{"status": first.Status, "code": string(first.Code())}}
	}
	r.ids[path] = r.h.All("/v2"+path+"?limit=500", r.key)
	return r.ids[path]
}

// paths returns a declared path with the ids of all objects in place of its parameters.
func (r *reads) paths(declaredPath string, declared map[string]op.Declaration) []string {
	r.h.T.Helper()
	before, rest, found := strings.Cut(declaredPath, "/:")
	if !found {
		return []string{declaredPath}
	}
	name, after, _ := strings.Cut(rest, "/")
	if after != "" {
		after = "/" + after
	}
	source, ok := sources[name]
	if !ok {
		r.h.T.Fatalf("no list has the ids of %s", name)
	}
	client := "" // as it begins a path of this client
	if parts := strings.Split(before, "/"); len(parts) > 2 {
		client = strings.Join(parts[:3], "/") + "/"
	}
	var paths []string
	for _, list := range r.paths(declared[source[0]].Meta().Path, declared) {
		if !strings.HasPrefix(list, client) {
			continue // of another client
		}
		for _, item := range r.list(list) {
			paths = append(paths, r.paths(before+"/"+fmt.Sprint(item[source[1]])+after, declared)...)
		}
	}
	return paths
}

// Differences compares what two services show (Reads). The keys are an operation and the path of a member of its
// response, with [] for the items of lists; the values are an example of each.
func Differences(want, got map[string]any) map[string]string {
	d := map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		operation, request, _ := strings.Cut(path, " ")
		compare(d, operation, request, want[path], got[path])
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[path]; !ok {
			operation, request, _ := strings.Cut(path, " ")
			d[operation+" surplus"] = request
		}
	}
	return d
}

// compare adds the differences of two values.
func compare(d map[string]string, at, request string, want, got any) {
	note := func(at string) {
		if _, ok := d[at]; !ok {
			d[at] = fmt.Sprintf("%s: want %.300s, got %.300s", request, jsonText(want), jsonText(got))
		}
	}
	switch want := want.(type) {
	case map[string]any:
		other, ok := got.(map[string]any)
		if !ok {
			note(at)
			return
		}
		names := maps.Clone(want)
		maps.Copy(names, other)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			compare(d, at+"."+name, request, want[name], other[name])
		}
	case []any:
		other, ok := got.([]any)
		if !ok || len(other) != len(want) {
			note(at + "[] length")
			return
		}
		for i := range want {
			compare(d, at+"[]", request, want[i], other[i])
		}
	default:
		if jsonText(want) != jsonText(got) {
			note(at)
		}
	}
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
