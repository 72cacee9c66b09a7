package v1compat

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"partnerapi/idmap"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/v2test"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden: for each case, v1's request, v2's input and output and v1's
// response stand side by side in testdata/ROUTE/CASE.*.json. In an output,
// members that begin with a capital are those that never leave the process, and a
// policy's scope, which no caller sends, is given by its kind.
func TestGolden(t *testing.T) {
	t.Parallel()
	unused := map[string]bool{}
	for _, pattern := range []string{"testdata/*", "testdata/*/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			unused[file] = !strings.HasPrefix(file, "testdata/fuzz")
		}
	}
	for _, r := range Declare(Config{}).routes {
		if r.Additive { // it translates nothing
			continue
		}
		delete(unused, filepath.Join("testdata", r.ID))
		requests, err := filepath.Glob(filepath.Join("testdata", r.ID, "*.request.json"))
		if err != nil || len(requests) == 0 {
			t.Fatalf("route %s has no golden case", r.ID)
		}
		for _, request := range requests {
			base := strings.TrimSuffix(request, ".request.json")
			for _, part := range []string{".request.json", ".v2-input.json", ".v2-output.json", ".response.json"} {
				delete(unused, base+part)
			}
			t.Run(strings.TrimPrefix(base, "testdata/"), func(t *testing.T) { golden(t, r, base) })
		}
	}
	for file, yes := range unused {
		if yes {
			t.Errorf("%s belongs to no case", file)
		}
	}
}

// golden runs one case.
func golden(t *testing.T, r *route, base string) {
	var request struct {
		Path  map[string]string `json:"path"`
		Query string            `json:"query"`
		Body  json.RawMessage   `json:"body"`
	}
	decode(t, base+".request.json", &request)
	query, err := url.ParseQuery(request.Query)
	if err != nil {
		t.Fatal(err)
	}
	in := r.input.New()
	err = r.input.Bind(in, op.Request{Path: func(name string) string { return request.Path[name] }, Query: query, Body: request.Body, Lenient: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := idmap.ResolveBy(goldenIDs, in); err != nil {
		t.Fatal(err)
	}
	compare(t, base+".v2-input.json", sent(t, r.toV2(in)))

	out := reflect.New(r.v2Output).Interface()
	decode(t, base+".v2-output.json", out)
	var inProcess map[string]any
	decode(t, base+".v2-output.json", &inProcess)
	for name, value := range inProcess {
		if unicode.IsUpper(rune(name[0])) {
			field := reflect.ValueOf(out).Elem().FieldByName(name)
			if id, ok := field.Addr().Interface().(encoding.TextUnmarshaler); !ok {
				field.Set(reflect.ValueOf(value))
			} else if err := id.UnmarshalText([]byte(value.(string))); err != nil {
				t.Fatal(err)
			}
		}
	}
	response := reflect.New(reflect.TypeOf(r.fromV2(out)))
	response.Elem().Set(reflect.ValueOf(r.fromV2(out)))
	if err := idmap.NumberBy(goldenNumbers, response.Interface()); err != nil {
		t.Fatal(err)
	}
	body, err := ginop.Encode(response.Interface())
	if err != nil {
		t.Fatal(err)
	}
	compare(t, base+".response.json", body)
}

// sent is the JSON of v2's input with the parameters that v1 sets only: a filter that v2
// gets changes no golden of v1.
func sent(t *testing.T, input any) []byte {
	t.Helper()
	parts := inputMembers(t, input)
	zero := inputMembers(t, reflect.New(reflect.TypeOf(input).Elem()).Interface())
	if query, ok := parts["Query"].(map[string]any); ok {
		none := zero["Query"].(map[string]any)
		maps.DeleteFunc(query, func(name string, value any) bool { return reflect.DeepEqual(value, none[name]) })
	}
	text, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func inputMembers(t *testing.T, v any) (members map[string]any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil {
		t.Fatal(err)
	}
	return members
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, got, "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	if *update {
		if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(want, pretty.Bytes()) {
		t.Errorf("%s is not what v1 makes (make goldens, and read the difference): %v\n%s", file, err,
			v2test.Diff(string(want), pretty.String()))
	}
}

// firstBytes begin the ids of the goldens' objects, which end in their numbers, 1 to 3.
var firstBytes = map[idmap.Kind]byte{
	idmap.Client: 1, idmap.Collection: 2, idmap.Group: 5, idmap.Policy: 7, idmap.Template: 8, idmap.Report: 9,
}

func goldenIDs(keys []idmap.NumberKey) (map[idmap.NumberKey]idmap.UUID, error) {
	found := map[idmap.NumberKey]idmap.UUID{}
	for _, key := range keys {
		if key.Number <= 3 {
			found[key] = idmap.UUID{0: firstBytes[key.Kind], 15: byte(key.Number)}
		}
	}
	return found, nil
}

func goldenNumbers(keys []idmap.IDKey) (map[idmap.IDKey]int64, error) {
	found := map[idmap.IDKey]int64{}
	for _, key := range keys {
		found[key] = int64(key.ID[15])
	}
	return found, nil
}
